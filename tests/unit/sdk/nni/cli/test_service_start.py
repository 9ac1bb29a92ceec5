"""`nnictl up` beside services that are up; its own process stands in for their supervisor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.json_server import JsonHandler, JsonServer, serving
from tests.support.ports import free_port

PROGRAM = """
import json, os, sys
from pathlib import Path
from nni.cli.main import main

endpoint = {"pid": os.getpid(), "http": sys.argv[3], "grpc": "g", "token": "t", "version": "4"}
Path(os.environ["NNI_HOME"], "endpoint.json").write_text(json.dumps(endpoint))
code = main(json.loads(sys.argv[2]))
print(code, "typer" in sys.modules, "pydantic" in sys.modules)
"""


def run(home: Path, *words: str, http: str = "http://h") -> subprocess.CompletedProcess[str]:
    """Run `nnictl` beside services whose manager is at ``http``, and return what it printed."""
    # A supervisor is known by this word of its command line.
    command = [sys.executable, "-c", PROGRAM, "svc_standalone", json.dumps(words), http]
    return subprocess.run(
        command,
        env={**os.environ, "NNI_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )


def printed(home: Path, *words: str) -> list[str]:
    """Return the lines that `nnictl` prints, and a last one with its code and what it imported."""
    return run(home, *words).stdout.splitlines()


def test_up_without_options_loads_neither_typer_nor_pydantic(tmp_path: Path) -> None:
    assert printed(tmp_path, "up") == [
        "INFO: The services were up already.",
        "Page and REST: http://h",
        "gRPC: g",
        "0 False False",
    ]


def test_up_says_the_same_without_typer_and_with_it(tmp_path: Path) -> None:
    assert printed(tmp_path, "up")[:-1] == printed(tmp_path, "up", "--port", "0")[:-1]


def test_up_prints_json(tmp_path: Path) -> None:
    assert json.loads("".join(printed(tmp_path, "up", "--json")[:-1])) == {
        "http": "http://h",
        "grpc": "g",
        "wasUp": True,
    }


def test_up_warns_if_the_manager_of_running_services_does_not_answer(tmp_path: Path) -> None:
    done = run(tmp_path, "up", http=f"http://127.0.0.1:{free_port()}")

    assert "WARNING: the manager does not answer" in done.stderr
    assert "see: nnictl doctor" in done.stderr
    assert done.stdout.splitlines()[0] == "INFO: The services were up already."


class Answering(JsonHandler):
    """Manager that answers."""

    def respond(self, method: str) -> None:
        self.send_json(200, {"version": "4", "method": method})


class Refusing(JsonHandler):
    """Manager that answers with an error."""

    def respond(self, method: str) -> None:
        self.send_json(403, {"error": f"no {method}"})


@pytest.mark.parametrize("manager", [Answering, Refusing])
def test_up_warns_of_nothing_if_the_manager_answers(
    tmp_path: Path, manager: type[JsonHandler]
) -> None:
    with serving(JsonServer(manager), "manager") as server:
        done = run(tmp_path, "up", http=server.address)

    assert done.stderr == ""


@pytest.mark.parametrize("words", [("up",), ("up", "--port", "0")])
def test_services_elsewhere_that_do_not_answer_are_an_error(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NNI_ENDPOINT", "https://127.0.0.1:1")
    monkeypatch.setenv("NNI_TOKEN", "t")

    assert printed(tmp_path, *words)[-1].split()[0] == "1"
