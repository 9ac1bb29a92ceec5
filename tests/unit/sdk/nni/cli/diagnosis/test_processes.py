from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from nni.cli.diagnosis import processes
from tests.support.endpoint_files import WAIT, Spawn, write_endpoint
from tests.support.wait import until
from tests.unit.sdk.nni.cli.diagnosis.conftest import only

NAMES = ("manager", "dispatcher", "trial-runner", "compressor", "nas", "nats-server")
SUPERVISOR = f"""
import subprocess, sys
waiting = {WAIT!r}
children = [
    subprocess.Popen([sys.executable, "-c", waiting, name], stdout=subprocess.DEVNULL)
    for name in sys.argv[2:-1]
]
children.append(subprocess.Popen([sys.argv[-1], "600"]))
print("up", flush=True)
sys.stdin.read()
for child in children:
    child.kill()
    child.wait()
"""


@pytest.fixture
def supervisor(home: Path, tmp_path: Path) -> Iterator[psutil.Process]:
    """A supervisor with children that carry the names of services."""
    bus = tmp_path / "nats-server"
    bus.symlink_to("/bin/sleep")
    words = ["svc_standalone", "svc_manager", "svc_dispatcher", "svc_trial_runner", str(bus)]
    with subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "NNI_HOME": str(home)},
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        write_endpoint(home, process.pid)
        found = psutil.Process(process.pid)
        until(lambda: len(found.children()) == 4, 10, "the children")
        # Right after its start a process may have no command line yet.
        until(lambda: all(child(found, word) for word in (*words[1:-1], "sleep")), 10, "the words")
        yield found


def child(supervisor: psutil.Process, *words: object) -> psutil.Process | None:
    """Give the child whose command line holds one of these words."""
    for one in supervisor.children():
        if any(str(word) in part for part in one.cmdline() for word in words):
            return one
    return None


def test_services_that_run_are_in_order(supervisor: psutil.Process) -> None:
    found = list(processes.check_children())

    assert [(finding.check, finding.result) for finding in found] == [
        (name, "ok") for name in NAMES
    ]


def test_a_compressor_without_jobs_need_not_run(supervisor: psutil.Process) -> None:
    (finding,) = (one for one in processes.check_children() if one.check == "compressor")

    assert (finding.result, finding.explanation) == ("ok", "starts with the first compression job")


def test_a_nas_service_without_searches_need_not_run(supervisor: psutil.Process) -> None:
    (finding,) = (one for one in processes.check_children() if one.check == "nas")

    assert finding.explanation == "starts with the first architecture search"


def test_a_service_that_is_dead_is_found(supervisor: psutil.Process) -> None:
    manager = child(supervisor, "svc_manager")
    assert manager is not None
    manager.kill()
    until(lambda: manager.status() == psutil.STATUS_ZOMBIE, 10, "its end")

    (text,) = only(processes.check_children(), "bad")

    assert text.startswith("is not running")
    assert "manager.log" in text


def test_a_service_that_is_halted_is_found(supervisor: psutil.Process) -> None:
    dispatcher = child(supervisor, "svc_dispatcher")
    assert dispatcher is not None
    dispatcher.send_signal(signal.SIGSTOP)
    until(lambda: dispatcher.status() == psutil.STATUS_STOPPED, 10, "the halt")

    assert only(processes.check_children(), "bad") == [
        f"is halted (SIGSTOP); let it go on with: kill -CONT {dispatcher.pid}"
    ]


def test_services_under_another_interpreter_are_worth_a_note(
    home: Path, spawn: Spawn, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    other = tmp_path / "other" / "python3"
    other.symlink_to(sys.executable)
    write_endpoint(home, spawn("svc_standalone", program=str(other)).pid)

    (text,) = only(processes.check_interpreter(), "note")

    assert f"the services run under {other}" in text


def test_services_under_this_interpreter_are_in_order(home: Path, spawn: Spawn) -> None:
    write_endpoint(home, spawn("svc_standalone").pid)

    assert only(processes.check_interpreter(), "ok")


def test_a_service_that_outlived_its_supervisor_is_found(home: Path, spawn: Spawn) -> None:
    left = spawn("svc_manager")

    (text,) = only(processes.check_orphans(), "bad")

    assert f"manager (pid {left.pid})" in text
    assert f"kill {left.pid}" in text


def test_a_trial_that_outlived_its_agent_is_found(home: Path, spawn: Spawn) -> None:
    left = spawn(NNI_TRIAL_JOB_ID="abcde")

    assert str(left.pid) in only(processes.check_orphans(), "bad")[0]


def test_processes_of_another_installation_are_left_alone(
    home: Path, spawn: Spawn, tmp_path: Path
) -> None:
    spawn("svc_manager", NNI_HOME=str(tmp_path / "elsewhere"))

    assert only(processes.check_orphans(), "ok") == ["none"]


def test_children_of_a_living_supervisor_are_no_orphans(supervisor: psutil.Process) -> None:
    assert only(processes.check_orphans(), "ok") == ["none"]


def test_without_services_there_is_nothing_to_say(home: Path) -> None:
    assert list(processes.check_children()) == list(processes.check_interpreter()) == []
