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
