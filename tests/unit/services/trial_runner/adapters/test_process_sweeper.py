import os
import shlex
import signal
import subprocess
import sys

import pytest

from svc_trial_runner.adapters import process_sweeper
from svc_trial_runner.adapters.process_sweeper import ProcSweeper
from svc_trial_runner.adapters.process_table import (
    ProcessEntry,
    all_processes,
    identity_of,
    read_entry,
    signal_exactly,
)
from svc_trial_runner.domain.claims import (
    AttemptKey,
    Claimed,
    JournalState,
    ProcessIdentity,
    ServerStarted,
    Started,
)

KEY = AttemptKey("exp", "aaaaa", 1)
TOKEN = f"token-of-a-trial-that-was-left-{os.urandom(8).hex()}"
"""Of these tests only: other runs of them on this machine look for theirs."""
CHILD = shlex.join([sys.executable, "-S", "-c", "import time; print(flush=True); time.sleep(60)"])
"""It prints a line when it runs: /proc shows the environment of a process only after `exec`."""


def sleeper(**environment: str) -> subprocess.Popen[bytes]:
    """Start a process that leads a session and has a child."""
    return subprocess.Popen(
        ["bash", "-c", f"{CHILD} & wait"],
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], **environment},
        start_new_session=True,
    )


def started(process: subprocess.Popen[bytes]) -> ProcessIdentity:
    assert process.stdout is not None
    process.stdout.readline()
    identity = identity_of(process.pid)
    assert identity is not None
    return identity


def finish(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def state(leader: ProcessIdentity | None, token: str = TOKEN) -> JournalState:
    made = JournalState()
    made.fold(Claimed(KEY, "c1", token, "ack"))
    if leader is not None:
        made.fold(Started("c1", leader))
    return made


def test_leader_and_its_group_are_killed() -> None:
    process = sleeper()
    leader = started(process)

    killed = ProcSweeper().sweep(state(leader))

    assert killed == 2
    assert process.wait() == -signal.SIGKILL
    finish(process)


def test_group_is_killed_though_its_leader_is_gone() -> None:
    process = sleeper()
    leader = started(process)
    process.kill()
    process.wait()

    assert ProcSweeper().sweep(state(leader)) == 1
    finish(process)


def test_process_outside_the_group_is_found_by_its_token() -> None:
    process = sleeper(NNI_TRIAL_TOKEN=TOKEN)
    started(process)

    assert ProcSweeper().sweep(state(None)) == 2
    finish(process)


def test_process_that_begins_during_a_look_is_found_by_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = sleeper(NNI_TRIAL_TOKEN=TOKEN)
    leader = started(process)
    looks: list[int] = []

    def begins_during_the_first_look() -> list[ProcessEntry]:
        entries = all_processes()
        looks.append(len(entries))
        return [one for one in entries if len(looks) > 1 or one.parent != leader.pid]

    monkeypatch.setattr(process_sweeper, "all_processes", begins_during_the_first_look)

    assert ProcSweeper().sweep(state(leader)) == 2
    assert process.wait() == -signal.SIGKILL
    finish(process)


def test_another_process_with_the_same_number_is_left_alone() -> None:
    process = sleeper()
    leader = started(process)
    earlier = ProcessIdentity(leader.pid, leader.start_time - 1)

    killed = ProcSweeper().sweep(state(earlier, token="an unused token"))

    assert killed == 0
    assert process.poll() is None
    os.killpg(process.pid, signal.SIGKILL)
    finish(process)


def test_servers_are_swept_as_well() -> None:
    process = sleeper()
    made = JournalState()
    made.fold(ServerStarted(started(process)))

    assert ProcSweeper().sweep(made) == 2
    finish(process)


def test_empty_journal_kills_nothing() -> None:
    assert ProcSweeper().sweep(JournalState()) == 0


def test_signal_hits_only_the_very_process() -> None:
    process = sleeper()
    leader = started(process)

    missed = signal_exactly(ProcessIdentity(leader.pid, leader.start_time + 1), signal.SIGKILL)
    hit = signal_exactly(leader, signal.SIGTERM)

    assert (missed, hit) == (False, True)
    entry = read_entry(leader.pid)
    assert entry is None or entry.group == leader.pid
    os.killpg(process.pid, signal.SIGKILL)
    finish(process)
