"""Processes of this machine, read from /proc."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from svc_trial_runner.adapters.process_table import (
    ChildList,
    ProcessEntry,
    ProcessSnapshot,
    ProcProcessTable,
    group_exists,
    identity_of,
    read_entry,
    signal_exactly,
    signal_group,
    signal_tree,
    token_of,
    with_descendants,
)
from svc_trial_runner.domain.claims import ProcessIdentity

ORPHANS_OF_THREADS = """
import subprocess, threading
from svc_trial_runner.adapters.process_reaper import become_subreaper
from svc_trial_runner.adapters.process_table import ChildList

become_subreaper()
children = ChildList()
orphans = []

def leave_orphan():
    shell = subprocess.run(["sh", "-c", "sleep 60 >/dev/null & echo $!"], stdout=subprocess.PIPE)
    orphans.append(int(shell.stdout))

for _ in range(2):
    thread = threading.Thread(target=leave_orphan)
    thread.start()
    thread.join()
leave_orphan()
print(sorted(children.pids()) == sorted(orphans))
subprocess.run(["kill", *map(str, orphans)])
"""


def test_orphans_of_any_thread_are_adopted_by_the_main_thread() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ORPHANS_OF_THREADS], capture_output=True, text=True, check=True
    )

    assert done.stdout == "True\n"


@contextmanager
def sleeper(program: str = "sleep", **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that leads a session; end it with the block."""
    environment = {"PATH": os.environ["PATH"], **variables}
    with subprocess.Popen([program, "60"], env=environment, start_new_session=True) as process:
        try:
            yield process
        finally:
            process.kill()


@contextmanager
def echo(**variables: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that has begun: /proc shows an environment some time after `exec` only."""
    environment = {"PATH": os.environ["PATH"], **variables}
    pipe = subprocess.PIPE
    with subprocess.Popen(["cat"], env=environment, stdin=pipe, stdout=pipe, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x")
        assert process.stdout.read(1) == b"x"
        yield process


def entry(pid: int, parent: int) -> ProcessEntry:
    return ProcessEntry(pid, parent, pid, pid, 1, "S")


def test_name_with_brackets_and_blanks_does_not_shift_the_fields(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/sleep")

    with sleeper(str(program)) as process:
        found = read_entry(process.pid)

    assert found is not None
    assert (found.parent, found.group, found.session) == (os.getpid(), process.pid, process.pid)
    uptime_s = float(Path("/proc/uptime").read_text().split()[0])
    age_s = uptime_s - found.start_time / os.sysconf("SC_CLK_TCK")
    assert -1 < age_s < 3600


def test_missing_process_has_no_entry_and_no_identity() -> None:
    assert read_entry(0) is None
    assert identity_of(0) is None
    assert token_of(0) == b""


def test_zombie_is_shown_as_such() -> None:
    with sleeper() as process:
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        found = read_entry(process.pid)

    assert found is not None
    assert found.state == "Z"


def test_descendants_are_found_at_any_depth() -> None:
    snapshot = ProcessSnapshot([entry(2, 1), entry(3, 2), entry(4, 3), entry(5, 1), entry(6, 9)])

    assert {found.pid for found in snapshot.descendants(2)} == {3, 4}
    assert {found.pid for found in snapshot.descendants(1)} == {2, 3, 4, 5}
    assert snapshot.find(6) == entry(6, 9)
    assert snapshot.find(7) is None


def test_process_is_found_by_the_token_in_its_environment() -> None:
    with echo(NNI_TRIAL_TOKEN="one") as one, echo(NNI_TRIAL_TOKEN="two"):
        snapshot = ProcessSnapshot()

        assert [found.pid for found in snapshot.carrying("one", os.getpid())] == [one.pid]
        assert snapshot.carrying("on", os.getpid()) == []


def test_signal_reaches_only_the_process_with_this_start_time() -> None:
    with sleeper() as process:
        identity = identity_of(process.pid)
        assert identity is not None

        assert not signal_exactly(replace(identity, start_time=1), signal.SIGKILL)
        assert process.poll() is None
        assert signal_exactly(identity, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def test_signals_leave_no_descriptor_open() -> None:
    with sleeper() as process:
        identity = identity_of(process.pid)
        assert identity is not None
        before = len(list(Path("/proc/self/fd").iterdir()))

        signal_exactly(replace(identity, start_time=1), signal.SIGTERM)
        signal_exactly(identity, signal.SIGKILL)

        assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_closed_list_of_children_is_empty() -> None:
    children = ChildList()
    with sleeper() as process:
        listed = process.pid in children.pids()
        children.close()
        children.close()

        assert children.pids() == []
    assert listed


def test_signal_to_an_ended_process_is_not_sent() -> None:
    with sleeper() as process:
        identity = identity_of(process.pid) or ProcessIdentity(0, 0)
        process.kill()
        process.wait()

    assert not signal_exactly(identity, signal.SIGKILL)


def test_group_exists_until_its_last_member_has_ended() -> None:
    with sleeper() as process:
        before = group_exists(process.pid)
        signal_group(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL  # so no other signal was sent before

    assert before
    assert not group_exists(process.pid)
    signal_group(process.pid, signal.SIGKILL)


def test_only_descendants_are_own_processes() -> None:
    with sleeper() as process:
        assert ProcProcessTable().own([process.pid, 1, os.getpid()]) == {process.pid}


def test_descendants_follow_their_roots_and_number_and_start_time_name_them() -> None:
    with sleeper() as process:
        parent, child = read_entry(os.getpid()), read_entry(process.pid)
        assert parent is not None
        assert child is not None

        found = with_descendants([parent])

        assert found[0] == parent
        assert child.name in {entry.name for entry in found[1:]}
        assert with_descendants([]) == []


def test_member_that_leaves_its_group_after_the_snapshot_is_signalled() -> None:
    leave = "import os, sys; sys.stdin.read(1); os.setsid(); print(flush=True); sys.stdin.read()"
    with (
        subprocess.Popen(["sleep", "60"], process_group=0) as leader,
        subprocess.Popen(
            [sys.executable, "-c", leave],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            process_group=leader.pid,
        ) as member,
    ):
        assert member.stdin is not None
        assert member.stdout is not None
        snapshot = ProcessSnapshot()
        related = [found for found in snapshot.entries if found.pid == member.pid]
        assert [found.group for found in related] == [leader.pid]
        member.stdin.write(b"x")
        assert member.stdout.read(1) == b"\n"
        identity = identity_of(leader.pid)
        assert identity is not None

        signal_tree(identity, snapshot, related, signal.SIGKILL)

        assert member.wait() == -signal.SIGKILL
        assert leader.wait() == -signal.SIGKILL


def test_member_of_the_group_gets_the_signal_once() -> None:
    count = """
import signal, sys
number = {signal.SIGRTMIN}
signal.pthread_sigmask(signal.SIG_BLOCK, number)
print(flush=True)
sys.stdin.read(1)
print(sum(1 for _ in iter(lambda: signal.sigtimedwait(number, 0), None)), flush=True)
"""
    with (
        subprocess.Popen(["sleep", "60"], process_group=0) as leader,
        subprocess.Popen(
            [sys.executable, "-c", count],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            process_group=leader.pid,
        ) as member,
    ):
        assert member.stdout is not None
        assert member.stdout.readline() == b"\n"
        snapshot = ProcessSnapshot()
        related = [found for found in snapshot.entries if found.pid == member.pid]
        identity = identity_of(leader.pid)
        assert identity is not None

        signal_tree(identity, snapshot, related, signal.SIGRTMIN)

        assert member.communicate(b"x")[0] == b"1\n"
        assert leader.wait() == -signal.SIGRTMIN


def test_group_of_a_reused_number_is_left_alone() -> None:
    with sleeper() as stranger:
        signal_tree(ProcessIdentity(stranger.pid, 1), ProcessSnapshot(), [], signal.SIGKILL)

        assert stranger.poll() is None
