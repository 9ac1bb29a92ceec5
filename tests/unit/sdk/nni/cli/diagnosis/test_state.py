from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from nni.cli.diagnosis import state
from tests.support.endpoint_files import Spawn, write_endpoint
from tests.unit.sdk.nni.cli.diagnosis.conftest import only


def dead_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_token_that_others_can_read_is_found(home: Path) -> None:
    path = write_endpoint(home, os.getpid())
    assert only(state.check_token(), "ok")
    path.chmod(0o644)

    (text,) = only(state.check_token(), "bad")

    assert f"chmod 600 {path}" in text


def test_the_file_of_a_supervisor_that_was_killed_is_stale(home: Path) -> None:
    pid = dead_pid()
    write_endpoint(home, pid)

    (text,) = only(state.check_endpoint_file(), "bad")

    assert f"(pid {pid}) was killed" in text
    assert "nnictl up" in text


def test_a_damaged_endpoint_file_is_found(home: Path) -> None:
    (home / "endpoint.json").write_text('{"pid": ')

    assert "is damaged" in only(state.check_endpoint_file(), "bad")[0]


def test_a_pipe_in_place_of_the_endpoint_file_is_found(home: Path) -> None:
    os.mkfifo(home / "endpoint.json")

    assert "is damaged" in only(state.check_endpoint_file(), "bad")[0]


def test_the_file_of_a_living_supervisor_is_in_order(home: Path, spawn: Spawn) -> None:
    write_endpoint(home, spawn("svc_standalone").pid)

    assert only(state.check_endpoint_file(), "ok")


def test_without_services_nothing_is_said_of_their_files(home: Path) -> None:
    assert list(state.check_endpoint_file()) == list(state.check_token()) == []
    assert list(state.check_logs()) == []


def test_a_log_folder_that_others_can_write_to_is_found(home: Path) -> None:
    folder = home / "log"
    folder.mkdir(mode=0o700)
    assert only(state.check_logs(), "ok") == [str(folder)]
    folder.chmod(0o777)

    assert f"chmod 700 {folder}" in only(state.check_logs(), "bad")[0]


def test_a_log_folder_that_cannot_be_written_is_found(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = home / "log"
    folder.mkdir(mode=0o700)
    # As on a disk that an error has made read-only; root may write to all other folders.
    monkeypatch.setattr(os, "access", lambda path, mode: path != folder or not mode & os.W_OK)

    assert f"{folder} cannot be written" in only(state.check_logs(), "bad")[0]


def test_a_log_folder_that_is_none_is_found(home: Path) -> None:
    (home / "log").write_text("")

    assert "is no folder" in only(state.check_logs(), "bad")[0]


def line(level: str, ago: timedelta, **facts: str) -> str:
    moment = (datetime.now(UTC) - ago).isoformat().replace("+00:00", "Z")
    return json.dumps({"event": "call failed", "level": level, "timestamp": moment, **facts})


def test_fresh_errors_in_logs_are_worth_a_note(home: Path) -> None:
    (home / "log").mkdir(mode=0o700)
    (home / "log" / "manager.log").write_text(
        "\n".join(
            [
                line("error", timedelta(hours=3), error="long ago"),
                line("warning", timedelta(minutes=1)),
                "a line of a library",
                line("error", timedelta(minutes=2), error="first"),
                line("error", timedelta(minutes=1), exception="Traceback\nValueError: no"),
            ]
        )
    )

    (text,) = only(state.check_logs(), "note")

    assert text.startswith("2 errors within the last hour, last: call failed: ValueError: no; see")


def test_a_port_of_the_services_that_another_program_holds_is_found(
    home: Path, spawn: Spawn
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        write_endpoint(home, spawn("svc_standalone").pid, http=f"http://127.0.0.1:{port}")

        (text,) = only(state.check_ports(), "bad")

    assert f"{port} of page and REST is held by" in text
    assert f"pid {os.getpid()}" in text


def test_a_page_port_that_is_taken_is_worth_a_note(home: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]

        (text,) = only(state.check_ports(port), "note")

    assert "choose another one with --port" in text
    assert only(state.check_ports(port), "ok")
