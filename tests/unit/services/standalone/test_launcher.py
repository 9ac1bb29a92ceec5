"""Start and stop from another process; the supervisor is a small program or the test itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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
