"""The command line, in this process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from svc_standalone.__main__ import main
from svc_standalone.endpoint import SUPERVISOR_LOCK, Endpoint, Lock, write_endpoint


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("NNI_HOME", str(tmp_path))
    monkeypatch.delenv("NNI_HTTP_PORT", raising=False)
    return tmp_path


def test_status_without_services(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status"]) == 0

    assert json.loads(capsys.readouterr().out) == {"up": False}


def test_status_shows_no_token(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = Lock.take(home / SUPERVISOR_LOCK)
    write_endpoint(home, Endpoint("4.0", os.getpid(), "now", "http://h", "g", "n", "hush"))

    assert main(["status"]) == 0

    shown = json.loads(capsys.readouterr().out)
    assert (shown["up"], shown["http"], shown["version"]) == (True, "http://h", "4.0")
    assert "hush" not in str(shown)
    lock.release()


def test_up_prints_the_addresses(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = Lock.take(home / SUPERVISOR_LOCK)
    write_endpoint(home, Endpoint("4.0", os.getpid(), "now", "http://h", "g", "n", "hush"))

    assert main(["up"]) == 0

    assert json.loads(capsys.readouterr().out) == {"http": "http://h", "grpc": "g"}
    lock.release()


def test_run_beside_running_services_prints_their_addresses(
    home: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    lock = Lock.take(home / SUPERVISOR_LOCK)
    write_endpoint(home, Endpoint("4.0", os.getpid(), "now", "http://h", "g", "n", "hush"))

    assert main(["run"]) == 0

    assert "hush" not in capfd.readouterr().out
    lock.release()


@pytest.mark.parametrize("place", ["command line", "environment"])
def test_run_uses_the_given_port(place: str, home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        # A process of its own: the supervisor forbids its inspection, and redirects all logs.
        command = [sys.executable, "-m", "svc_standalone", "run"]
        variables = {**os.environ, "NNI_HOME": str(home)}
        if place == "command line":
            command += ["--port", str(port)]
        else:
            variables["NNI_HTTP_PORT"] = str(port)
        done = subprocess.run(command, check=False, env=variables)

    assert done.returncode == 1
    assert f"port {port} cannot be used" in (home / "log" / "supervisor.log").read_text()


@pytest.mark.parametrize(("pid", "shown"), [(7, ""), (0, '{"up": false}\n')])
def test_detached_command_runs_in_the_child_alone(
    pid: int, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A process that has forked a child ends at once with status 0; the child runs the command."""
    monkeypatch.setattr(os, "fork", lambda: pid)
    monkeypatch.setattr(os, "_exit", sys.exit)

    with pytest.raises(SystemExit) as end:
        sys.exit(main(["status", "--detach"]))

    assert end.value.code == 0
    assert capsys.readouterr().out == shown


def test_command_forks_no_process_unless_detached(monkeypatch: pytest.MonkeyPatch) -> None:
    forks: list[str] = []

    def fork() -> int:
        forks.append("fork")
        return 0

    monkeypatch.setattr(os, "fork", fork)

    assert (main(["status"]), forks) == (0, [])


def test_down_without_services(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["down"]) == 0

    assert capsys.readouterr().out == "was not up\n"


def test_error_is_one_line_and_exit_code_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NNI_HTTP_PORT", "http")

    assert main(["status"]) == 1

    assert capsys.readouterr().err.startswith("NNI_HTTP_PORT must be a whole number")


def test_unknown_command_is_refused() -> None:
    with pytest.raises(SystemExit) as refusal:
        main(["restart"])

    assert refusal.value.code == 2
