"""An installation of its own for each test, with real files and real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nni.cli.doctoring.finding import Finding
from nni.version import __version__

WAIT = "import sys, time; print('up', flush=True); time.sleep(600)"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`NNI_HOME`, empty."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("NNI_HOME", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NNI_ENDPOINT", raising=False)
    return folder


Spawn = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture
def spawn(home: Path) -> Iterator[Spawn]:
    """Start processes that look like parts of an installation and only wait."""
    started: list[subprocess.Popen[bytes]] = []

    def start(
        *words: str, program: str = sys.executable, **variables: str
    ) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [program, "-c", WAIT, *words],
            stdout=subprocess.PIPE,
            env={**os.environ, "NNI_HOME": str(home), **variables},
        )
        started.append(process)
        assert process.stdout is not None
        process.stdout.readline()
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def write_endpoint(home: Path, pid: int, **changes: object) -> Path:
    """Write `endpoint.json` as a supervisor does."""
    path = home / "endpoint.json"
    fields = {
        "version": __version__,
        "pid": pid,
        "started_at": "2026-01-01T00:00:00+00:00",
        "http": "http://127.0.0.1:1",
        "grpc": "127.0.0.1:1",
        "nats": "",
        "token": "t",
        **changes,
    }
    path.write_text(json.dumps(fields))
    path.chmod(0o600)
    return path


def only(findings: Iterator[Finding], result: str) -> list[str]:
    """Give the explanations of the findings with a result."""
    return [finding.explanation for finding in findings if finding.result == result]
