"""Processes of a worker: identities, marks, signals."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from svc_trial_runner.fleet.adapters.bundles.worker_processes import (
    MARK,
    has_ended,
    kill_marked,
    marked,
    runs,
    send_signal,
    start_time,
    wait_until,
)


@pytest.fixture
def process(tmp_path: Path) -> Iterator["subprocess.Popen[bytes]"]:
    code = "import time; print(flush=True); time.sleep(600)"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, MARK: str(tmp_path)},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as started:
        assert started.stdout is not None
        started.stdout.readline()  # it has its environment by now
        yield started
        started.kill()


def test_process_is_known_by_number_and_start(process: "subprocess.Popen[bytes]") -> None:
    started = start_time(process.pid)

    assert started is not None
    assert runs(process.pid, started)
    assert not runs(process.pid, started + 1)


def test_signal_to_an_earlier_process_of_the_number_is_not_sent(
    process: "subprocess.Popen[bytes]",
) -> None:
    started = start_time(process.pid) or 0

    send_signal(process.pid, started - 1, signal.SIGKILL)
    assert runs(process.pid, started)
    send_signal(process.pid, started, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL


def test_ended_process_that_nothing_has_waited_for_does_not_run(
    process: "subprocess.Popen[bytes]",
) -> None:
    started = start_time(process.pid) or 0

    process.kill()

    assert wait_until(lambda: not runs(process.pid, started), 30)


def test_processes_of_an_agent_are_found_by_their_mark_and_killed(
    process: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    assert [pid for pid, _ in marked(tmp_path)] == [process.pid]

    assert kill_marked(tmp_path, 30)
    assert process.wait() == -signal.SIGKILL
    assert marked(tmp_path) == []


def test_wait_ends_at_its_limit() -> None:
    assert not wait_until(lambda: False, 0)


@pytest.mark.parametrize("pid", [0, -1])
def test_number_that_no_process_has_does_not_run(pid: int) -> None:
    started = start_time(os.getpid()) or 0

    assert not runs(pid, started)
    assert has_ended(pid, started)
    assert runs(os.getpid(), started)
    assert not has_ended(os.getpid(), started)


def test_process_whose_name_looks_like_fields_is_known(tmp_path: Path) -> None:
    program = tmp_path / "a) Z 1"
    program.symlink_to(shutil.which("sleep") or "")
    with subprocess.Popen(["sleep", "600"], executable=program) as process:
        started = start_time(process.pid)
        mine = start_time(os.getpid()) or 0
        process.kill()

    # Ticks since boot: it began after this process.
    assert started is not None
    assert started >= mine > 0


def test_wait_ends_when_its_condition_holds() -> None:
    results = iter([False, False, True])

    assert wait_until(lambda: next(results), 30)


def test_process_that_is_gone_gets_no_signal() -> None:
    with subprocess.Popen(["true"]) as gone:
        gone.wait()

    send_signal(gone.pid, 1, signal.SIGTERM)
    assert start_time(gone.pid) is None


def test_processes_of_another_folder_are_not_marked(
    process: "subprocess.Popen[bytes]", tmp_path: Path
) -> None:
    """One folder's name begins with that of the other."""
    assert marked(Path(str(tmp_path)[:-1])) == []
    assert marked(Path(f"{tmp_path}1")) == []
    assert marked(tmp_path) == [(process.pid, start_time(process.pid))]


def test_nothing_is_left_of_an_agent_without_processes(tmp_path: Path) -> None:
    assert kill_marked(tmp_path, 0)
