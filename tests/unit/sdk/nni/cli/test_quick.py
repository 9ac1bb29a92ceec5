"""The fast lane answers as the ordinary command does, or leaves the word to it."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from nni.cli import quick
from nni.cli.quick import quick_answer

PROFILE = {"id": "abc12345", "bestValue": "NaN", "params": {"experimentName": "ä"}}


class Manager(HTTPServer):
    """Listens as the manager's REST does."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answers)
        self.running: list[str] = []
        """Ids of the experiments that run."""


class Answers(BaseHTTPRequestHandler):
    """Answers as the manager's REST does."""

    server: Manager

    def do_GET(self) -> None:
        known = "/api/v1/nni/experiments/abc12345/experiment"
        if self.headers["Authorization"] != "Bearer secret":
            self.send_error(401)
        elif self.path == "/api/v1/nni/experiments-info?all=false":
            self._answer([{"id": name} for name in self.server.running])
        elif self.path == known:
            self._answer(PROFILE)
        else:
            self.send_error(404)

    def _answer(self, data: object) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(data).encode())

    def log_message(self, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def manager() -> Iterator[Manager]:
    with Manager() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def home(private_home: Path, manager: Manager, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder whose services are the `manager`, which may take its time to answer."""
    monkeypatch.setattr(quick, "_TIMEOUT_S", 60.0)
    folder = private_home / "nni"
    folder.mkdir()
    write_endpoint(folder, f"http://127.0.0.1:{manager.server_port}")
    return folder


def write_endpoint(folder: Path, http: str) -> None:
    endpoint = {"http": http, "token": "secret", "pid": 1}
    (folder / "endpoint.json").write_text(json.dumps(endpoint))


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize("running", [["abc12345"], ["abc12345", "other"]])
def test_a_profile_is_shown(running: list[str], manager: Manager) -> None:
    manager.running = running
    words = ["experiment", "show"] + (["abc12345"] if len(running) > 1 else [])

    text = quick_answer(words)

    assert text == json.dumps(PROFILE, indent=2, ensure_ascii=False) + "\n"


@pytest.mark.usefixtures("home")
@pytest.mark.parametrize(
    "words",
    [
        [],
        ["experiment"],
        ["experiment", "status"],
        ["experiment", "show", "abc"],
        ["experiment", "show", "--json"],
        ["experiment", "show", "../x"],
        ["experiment", "show", "abc12345", "--json"],
        ["experiment", "show"],
    ],
)
def test_all_that_is_unusual_is_left_to_the_ordinary_command(words: list[str]) -> None:
    assert quick_answer(words) is None


@pytest.mark.parametrize(
    "http", ["https://127.0.0.1:1", "http://10.0.0.1:80", "http://127.0.0.1:1"]
)
def test_services_that_it_cannot_reach_are_left_to_the_ordinary_command(
    http: str, home: Path
) -> None:
    write_endpoint(home, http)

    assert quick_answer(["experiment", "show", "abc12345"]) is None


def test_services_that_the_user_names_are_left_to_the_ordinary_command(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert home.exists()
    monkeypatch.setenv("NNI_ENDPOINT", "https://elsewhere")

    assert quick_answer(["experiment", "show", "abc12345"]) is None


def test_without_services_the_ordinary_command_says_so() -> None:
    assert quick_answer(["experiment", "show", "abc12345"]) is None


def test_it_imports_nothing_heavy() -> None:
    heavy = "{'typer', 'grpc', 'google.protobuf', 'pydantic', 'yaml', 'http.client'}"
    code = f"import sys, nni.cli.main; sys.exit(str({heavy} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.stderr.strip() == "set()"
