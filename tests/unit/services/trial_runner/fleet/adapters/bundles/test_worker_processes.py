"""Processes of a worker: identities, marks, signals."""

import os
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
