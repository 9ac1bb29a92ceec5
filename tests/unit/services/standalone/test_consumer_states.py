"""States of consumers that nats-server has written, whole and damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from svc_standalone.consumer_states import is_readable, set_damaged_states_aside

WHOLE = bytes([22, 2, 20, 20, 25, 25, 2, 200, 1, 21, 21, 0, 22, 22, 3, 0])
"""20 messages acknowledged, 25 delivered, of which two are pending since 100 s."""


@pytest.mark.parametrize("data", [b"", WHOLE, bytes([22, 1, 1, 1, 1, 1]), WHOLE + bytes([1, 2, 3])])
def test_a_whole_state_is_readable(data: bytes) -> None:
    assert is_readable(data)


@pytest.mark.parametrize(
    "data",
    [
        WHOLE[:1],
        WHOLE[:4],
        WHOLE[: len(WHOLE) // 2],
        bytes(len(WHOLE)),
        bytes([22, 3]) + WHOLE[2:],
        WHOLE[:6] + bytes([0xFF, 0xFF, 0x7F]) + WHOLE[7:],
        WHOLE[:-1] + bytes([0x80]),
        WHOLE[:2] + bytes([0x80] * 11) + WHOLE[3:],
    ],
    ids=["1 byte", "4 bytes", "half", "zeros", "version", "many pending", "open end", "long"],
)
def test_a_damaged_state_is_not(data: bytes) -> None:
    assert not is_readable(data)


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
