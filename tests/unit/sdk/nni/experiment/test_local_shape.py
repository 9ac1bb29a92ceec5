"""Bringing the services up, against small programs that stand in for the supervisor."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from nni.experiment import local_shape
from nni.experiment.endpoint import endpoint_path, read_endpoint
from nni.experiment.errors import RefusedError, ServiceFailedError, UnreachableError
from nni.experiment.local_shape import (
    SUPERVISOR_MODULE,
    end_process,
    ensure_local_shape,
    recovered_endpoint,
    running_endpoint,
    stop_local_shape,
)

UP = """
import json, os, pathlib, signal
if os.fork():
    os._exit(0)  # detached, as the real one is when it is asked to
home = pathlib.Path(os.environ["NNI_HOME"])
fields = {"pid": os.getpid(), "http": "h", "grpc": "g", "nats": "n", "token": "t", "version": "v",
          "started_at": "s"}
(home / "endpoint.json").write_text(json.dumps(fields))
# Blocked, not handled: `pause` would miss a handler's signal that comes just before it.
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
os.write(int(os.environ["NNI_READY_FD"]), b'{"ready": true}\\n')
signal.sigwait({signal.SIGTERM})
(home / "endpoint.json").unlink()
"""
REFUSING = """
import os
os.write(int(os.environ["NNI_READY_FD"]), b'{"ready": false, "error": "no bus here"}\\n')
"""
CRASHING = "raise SystemExit('a word on stderr')"


def supervise(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """Let ``script`` be the package of the supervisor."""
    package = folder / "packages" / SUPERVISOR_MODULE
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "__main__.py").write_text(script)
    monkeypatch.setenv("PYTHONPATH", str(package.parent))
    monkeypatch.setattr(sys, "path", [*sys.path, str(package.parent)])


def test_services_come_up_once_and_go_down(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervise(tmp_path, monkeypatch, UP)

    endpoint = ensure_local_shape()

    assert endpoint.token == "t"
    assert ensure_local_shape() == endpoint == running_endpoint() == recovered_endpoint()
    assert stop_local_shape() is True
    assert read_endpoint() is None
    assert recovered_endpoint() is None
    assert stop_local_shape() is False


@pytest.mark.parametrize(("written", "warnings"), [(b'{"ready": true}\n', 0), (b"", 1)])
def test_start_that_is_slow_is_a_warning_and_goes_on(
    written: bytes, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    reader, writer = os.pipe()
    os.write(writer, written)

    line = local_shape._ready_line(reader, slow_s=0.0, limit_s=0.0)

    assert line == written
    assert caplog.text.count("the services are starting for 0 s") == warnings
    os.close(reader)
    os.close(writer)


@pytest.mark.parametrize(
    ("chosen", "used"), [("power", "power"), ("", "process")], ids=["argument", "environment"]
)
def test_durability_reaches_the_supervisor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chosen: str, used: str
) -> None:
    script = UP.replace('"version": "v"', '"version": os.environ["NNI_DURABILITY"]')
    supervise(tmp_path, monkeypatch, script)
    monkeypatch.setenv("NNI_DURABILITY", "process")

    endpoint = ensure_local_shape(durability=chosen)

    assert endpoint.version == used
    assert stop_local_shape() is True


def test_supervisor_that_hangs_is_named_with_the_command_that_ends_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervise(tmp_path, monkeypatch, UP)
    pid = ensure_local_shape().supervisor_pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(ServiceFailedError, match=f"within 0 s.*kill -9 {pid}; no result"):
            stop_local_shape(limit_s=0.0)
    finally:
        os.kill(pid, signal.SIGCONT)
        assert end_process(pid, 30.0)


def test_reason_of_a_refusal_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    supervise(tmp_path, monkeypatch, REFUSING)

    with pytest.raises(RefusedError, match="do not start: no bus here"):
        ensure_local_shape()


def test_last_words_of_a_supervisor_that_crashes_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervise(tmp_path, monkeypatch, CRASHING)

    with pytest.raises(ServiceFailedError, match="a word on stderr"):
        ensure_local_shape()


def test_missing_package_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, SUPERVISOR_MODULE, None)  # as if it were not installed

    with pytest.raises(RefusedError, match=r"pip install 'nni\[local\]'"):
        ensure_local_shape()


def test_file_of_a_dead_supervisor_counts_as_none_and_brings_a_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervise(tmp_path, monkeypatch, UP)
    endpoint_path().parent.mkdir(parents=True)
    fields = {"pid": os.getpid(), "http": "h", "grpc": "g", "token": "old"}
    endpoint_path().write_text(json.dumps(fields))

    assert read_endpoint() is None
    recovered = recovered_endpoint()

    assert recovered is not None
    assert recovered.token == "t"
    stop_local_shape()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1}'])
def test_broken_endpoint_file_counts_as_none(text: str) -> None:
    endpoint_path().parent.mkdir(parents=True)
    endpoint_path().write_text(text)

    assert read_endpoint() is None


def test_nothing_up_says_what_to_do() -> None:
    with pytest.raises(UnreachableError, match="nnictl create --config"):
        running_endpoint()


def test_process_that_its_parent_does_not_reap_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert end_process(child.pid, timeout_s=60)

        # Still a zombie: nothing has waited for it yet.
        assert os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT) is not None
        assert child.wait() == -signal.SIGTERM


def test_process_that_ignores_the_request_has_not_ended() -> None:
    script = (
        "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, {15}); print(flush=True); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()

        assert not end_process(child.pid, timeout_s=0)

        child.communicate(b"\n")


def test_process_that_does_not_exist_has_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as child:
        child.wait()

    assert end_process(child.pid, timeout_s=0)
