"""States of consumers that nats-server has written, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc_standalone.consumer_states import is_readable, set_damaged_states_aside
from tests.support.consumer_states import DAMAGED, READABLE, WHOLE


@pytest.mark.parametrize("data", READABLE.values(), ids=READABLE)
def test_a_whole_state_is_readable(data: bytes) -> None:
    assert is_readable(data)


@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_a_damaged_state_is_not(data: bytes) -> None:
    assert is_readable(data) is False


HEAD = bytes([22, 1, 1, 1, 9, 9])
"""Version 1: one message acknowledged, nine delivered; pending messages follow."""


@pytest.mark.parametrize(
    "data",
    [
        WHOLE[:-1],  # without the number of messages that were delivered again
        HEAD,
        HEAD + bytes([1, 100, 2, 0]),
        HEAD + bytes([130, 1]) + bytes(1 + 2 * 130),  # 130 pending, two numbers of each
        HEAD[:-1] + bytes([0x80] * 9 + [1]),  # a number of 64 bits
        HEAD[:-1] + bytes([0x7F]),
    ],
    ids=["version 2", "no pending", "one pending", "many pending", "longest", "7 bits"],
)
def test_state_is_readable_only_as_long_as_it_is_whole(data: bytes) -> None:
    assert is_readable(data)
    assert not is_readable(data[:-1])


@pytest.mark.parametrize("place", range(4))
def test_number_of_ten_bytes_is_the_longest(place: int) -> None:
    positions = [bytes([1])] * 4
    longest, too_long = (bytes([0x80] * more + [1]) for more in (9, 10))

    for number, readable in ((longest, True), (too_long, False)):
        positions[place] = number
        assert is_readable(bytes([22, 1]) + b"".join(positions)) is readable


def test_only_damaged_states_are_renamed(tmp_path: Path) -> None:
    states = {}
    for name, data in (("good", WHOLE), ("bad", WHOLE[:5])):
        states[name] = tmp_path / "jetstream" / "NNI" / "streams" / "INBOX" / "obs" / name / "o.dat"
        states[name].parent.mkdir(parents=True)
        states[name].write_bytes(data)

    set_damaged_states_aside(tmp_path)

    assert states["good"].read_bytes() == WHOLE
    assert [path.name.partition("-")[0] for path in states["bad"].parent.iterdir()] == [
        "o.dat.damaged"
    ]


@pytest.mark.parametrize(
    "name", ["meta.inf", "meta.sum", "msgs/1.blk", "msgs/index.db", "obs/pool/meta.sum"]
)
def test_folder_in_place_of_a_file_is_renamed_once(name: str, tmp_path: Path) -> None:
    place = tmp_path / "jetstream" / "NNI" / "streams" / "TASKS" / name
    (place / "content").mkdir(parents=True)

    set_damaged_states_aside(tmp_path)
    set_damaged_states_aside(tmp_path)

    (moved,) = place.parent.glob("*.damaged-*")
    assert not place.exists()
    assert (moved / "content").is_dir()
