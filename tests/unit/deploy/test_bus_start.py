"""Start of the bus in containers, which sets damaged states of consumers aside."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from svc_standalone.consumer_states import is_readable
from tests.support.consumer_states import DAMAGED, READABLE, WHOLE
from tests.support.deployment import DEPLOY

START = DEPLOY / "nats" / "start.sh"
ARGUMENTS = "import sys; print(sys.argv[1:]); sys.exit(7)"


def state_of(store: Path, consumer: str) -> Path:
    """Return the place of a consumer's state below the folder of the bus."""
    return store / "jetstream" / "$G" / "streams" / "INBOX" / "obs" / consumer / "o.dat"


def start(store: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command as the program of the bus."""
    return subprocess.run(
        ["sh", START, *command],
        env={"PATH": os.defpath, "NNI_NATS_STORE": str(store)},
        capture_output=True,
        text=True,
        check=False,
    )


def kept(store: Path, states: Mapping[str, bytes]) -> set[str]:
    """Return the names of the states that are at their places after a start."""
    for name, data in states.items():
        place = state_of(store, name)
        place.parent.mkdir(parents=True)
        place.write_bytes(data)
    done = start(store, "true")
    assert done.returncode == 0, done.stderr
    return {name for name in states if state_of(store, name).exists()}


def test_program_has_its_arguments_and_its_end_is_that_of_the_container(tmp_path: Path) -> None:
    done = start(tmp_path, sys.executable, "-c", ARGUMENTS, "--config", "a b")

    assert (done.returncode, done.stdout) == (7, "['--config', 'a b']\n")
    assert done.stderr == ""


def test_only_damaged_states_are_set_aside(tmp_path: Path) -> None:
    assert kept(tmp_path, READABLE | DAMAGED) == READABLE.keys()
    assert [path.read_bytes() for path in state_of(tmp_path, "half").parent.iterdir()] == [
        DAMAGED["half"]
    ]


def test_a_state_that_was_set_aside_is_named(tmp_path: Path) -> None:
    place = state_of(tmp_path, "agent one")
    place.parent.mkdir(parents=True)
    place.write_bytes(WHOLE[:3])

    done = start(tmp_path, "true")

    assert done.stderr.startswith(f"{place} is no state of a consumer: moved to {place}.damaged-")
    assert not place.exists()


def test_damage_is_judged_as_on_a_machine_without_containers(tmp_path: Path) -> None:
    rng = random.Random(0)
    header = bytes([22, 2, *[200, 200, 3] * 4, 255, 3, 4])  # 511 are pending
    long = header + bytes(rng.randrange(1, 128) for _ in range(511 * 3))
    assert is_readable(long)
    cut = {f"cut {size}": WHOLE[:size] for size in range(len(WHOLE))}
    flipped = {
        f"flipped {place} {bit}": WHOLE[:place]
        + bytes([WHOLE[place] ^ 1 << bit])
        + WHOLE[place + 1 :]
        for place in range(len(WHOLE))
        for bit in (0, 3, 7)
    }
    pages = {f"page {size}": long[:size] for size in (512, 1024, len(long) - 1, len(long))}
    states = cut | flipped | pages

    assert kept(tmp_path, states) == {name for name in states if is_readable(states[name])}
