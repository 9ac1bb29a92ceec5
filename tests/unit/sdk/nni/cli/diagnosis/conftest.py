"""An installation of its own for each test, with real files and real processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from nni.cli.diagnosis.finding import Finding
from tests.support.endpoint_files import Spawn, process_spawner


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`NNI_HOME`, empty."""
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("NNI_HOME", str(folder))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("NNI_ENDPOINT", raising=False)
    return folder


@pytest.fixture
def spawn(home: Path) -> Iterator[Spawn]:
    """Start processes that look like parts of an installation and only wait."""
    with process_spawner(home) as start:
        yield start


def only(findings: Iterator[Finding], result: str) -> list[str]:
    """Give the explanations of the findings with a result."""
    return [finding.explanation for finding in findings if finding.result == result]
