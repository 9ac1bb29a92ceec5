"""Start and stop from another process; the supervisor is a small program or the test itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from nni_wire.limits import START_LIMIT_S, START_WAIT_S
from svc_common.errors import FailedPreconditionError
from svc_standalone import launcher
from svc_standalone.endpoint import SUPERVISOR_LOCK, Endpoint, Lock, write_endpoint

HOLD_LOCK = """
import signal, sys
from pathlib import Path
from svc_standalone.endpoint import SUPERVISOR_LOCK, Lock
lock = Lock.take(Path(sys.argv[1]) / SUPERVISOR_LOCK)
print("held", flush=True)
signal.pause()
"""

STOP_SLOWLY = """
import signal, sys
from pathlib import Path
from svc_standalone.endpoint import SUPERVISOR_LOCK, Lock
home = Path(sys.argv[1])
lock = Lock.take(home / SUPERVISOR_LOCK)
def stop(*_):
    (home / "stopped").touch()
    sys.exit()
signal.signal(signal.SIGTERM, stop)
print("held", flush=True)
signal.pause()
"""


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that puts a shell script in the place of the supervisor."""

    def replace(script: str) -> None:
        program = tmp_path / "program"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(program))
        monkeypatch.setattr(launcher, "START_WAIT_S", 5.0)

    return replace


def endpoint(pid: int) -> Endpoint:
    return Endpoint("4.0", pid, "2026-01-01T00:00:00+00:00", "http://h", "g", "nats://n", "t")


def test_running_services_are_not_started_again(tmp_path: Path) -> None:
    lock = Lock.take(tmp_path / SUPERVISOR_LOCK)
    written = endpoint(os.getpid())
    write_endpoint(tmp_path, written)

    assert launcher.up(tmp_path) == written

    lock.release()


def test_failed_start_has_the_reason_of_the_supervisor(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.write_text("a file in the place of the folder")

    with pytest.raises(FailedPreconditionError, match="services do not start: cannot use"):
        launcher.up(home)


def test_down_without_services_is_no_error(tmp_path: Path) -> None:
    assert launcher.down(tmp_path) is False


def test_down_ends_the_supervisor(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD_LOCK, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as supervisor:
        assert supervisor.stdout is not None
        assert supervisor.stdout.readline() == "held\n"
        write_endpoint(tmp_path, endpoint(supervisor.pid))

        assert launcher.down(tmp_path) is True

        assert supervisor.wait(20) != 0


def test_supervisor_that_ends_without_a_word_is_named(
    tmp_path: Path, supervisor: Callable[[str], None]
) -> None:
    supervisor("exit 3")

    with pytest.raises(FailedPreconditionError, match="do not start: its supervisor ended"):
        launcher.up(tmp_path)


def test_supervisor_starts_on_a_free_port_in_a_session_of_its_own(
    tmp_path: Path, supervisor: Callable[[str], None]
) -> None:
    supervisor('echo "$NNI_HTTP_PORT $$ $(cut -d" " -f6 /proc/$$/stat) $*" > "$NNI_HOME/started"')

    with pytest.raises(FailedPreconditionError):
        launcher.up(tmp_path)

    port, pid, session, *arguments = (tmp_path / "started").read_text().split()
    assert (port, session) == ("0", pid)
    assert arguments == ["-P", "-m", "svc_standalone", "run", "--detach"]


def test_started_services_are_returned_and_no_descriptor_stays_open(
    tmp_path: Path, supervisor: Callable[[str], None]
) -> None:
    lock = Lock.take(tmp_path / SUPERVISOR_LOCK)
    written = endpoint(os.getpid())
    write_endpoint(tmp_path, written)
    (tmp_path / "endpoint.json").rename(tmp_path / "written")
    supervisor('mv "$NNI_HOME/written" "$NNI_HOME/endpoint.json"')
    before = len(list(Path("/proc/self/fd").iterdir()))

    started = launcher.up(tmp_path)

    assert started == written
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    lock.release()


def test_start_is_given_up_after_the_limit_of_the_services_alone() -> None:
    assert START_WAIT_S > START_LIMIT_S


def test_supervisor_that_ends_by_itself_was_not_up(tmp_path: Path) -> None:
    with subprocess.Popen(["true"]) as ended:
        pass
    lock = Lock.take(tmp_path / SUPERVISOR_LOCK)
    write_endpoint(tmp_path, endpoint(ended.pid))

    assert launcher.down(tmp_path) is False
    lock.release()


def test_down_returns_when_the_supervisor_has_stopped(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STOP_SLOWLY, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "held\n"
        write_endpoint(tmp_path, endpoint(running.pid))

        launcher.down(tmp_path)

        assert (tmp_path / "stopped").exists()
