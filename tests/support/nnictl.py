"""`nnictl` as a person uses it, on services that all tests of a module share."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nni.experiment import Experiment
from tests.support.local_shape import LocalShape
from tests.support.ports import free_port
from tests.support.servers import require_binary

_TIMEOUT_S = 150.0


class Nnictl:
    """Commands on one installation."""

    def __init__(self, shape: LocalShape) -> None:
        self.shape = shape

    def __call__(
        self, *words: str | Path | int, expect: int = 0, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command to its end; ``expect`` is the exit code wanted."""
        done = subprocess.run(
            self._command(words),
            cwd=self.shape.folder,
            env={**self.shape.environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
        assert done.returncode == expect, f"{words}\n{done.stdout}\n{done.stderr}"
        return done

    def start(self, *words: str | Path | int) -> subprocess.Popen[str]:
        """Start a command and let it run; both its outputs are one stream."""
        return subprocess.Popen(
            self._command(words),
            cwd=self.shape.folder,
            env=self.shape.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    @staticmethod
    def _command(words: tuple[str | Path | int, ...]) -> list[str]:
        return [sys.executable, "-P", "-m", "nni.cli.main", *(str(word) for word in words)]

    def json(self, *words: str | Path | int) -> Any:
        """Run a command that prints JSON and return it."""
        return json.loads(self(*words).stdout)

    def create(self, config: Path, *words: str | Path | int, port: int | None = None) -> str:
        """Create an experiment, on a free port if none is given, and return its id."""
        chosen = free_port() if port is None else port
        out = self("create", "--config", config, "--port", chosen, *words).stdout
        found = re.search(r"The experiment id is (\w+)", out)
        assert found is not None, out
        return found[1]

    def begin(self, config: Path) -> Experiment:
        """Create an experiment, and open it in this process, which `services_here` prepares."""
        port = free_port()
        self.create(config, port=port)
        return Experiment.connect(port)

    def trials(self, experiment_id: str) -> list[dict[str, Any]]:
        """Return the trials of an experiment."""
        found: list[dict[str, Any]] = self.json("trial", "ls", experiment_id, "--json")
        return found

    def status(self, experiment_id: str) -> dict[str, Any]:
        """Return state and errors of an experiment."""
        found: dict[str, Any] = self.json("experiment", "status", experiment_id)
        return found


@pytest.fixture(scope="module")
def shared_shape(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalShape]:
    """Services that the tests of a module share; the first command brings them up."""
    require_binary("nats-server")
    shape = LocalShape(tmp_path_factory.mktemp("shape"))
    try:
        yield shape
    finally:
        Nnictl(shape)("down")


@pytest.fixture(autouse=True)
def services_here(shared_shape: LocalShape, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let clients in this process use the shared services, in modules that import this."""
    for name in ("HOME", "NNI_HOME", "PATH"):
        monkeypatch.setenv(name, shared_shape.environment[name])


@pytest.fixture
def nnictl(shared_shape: LocalShape) -> Iterator[Nnictl]:
    """Commands on the shared services; what a test started is stopped at its end."""
    commands = Nnictl(shared_shape)
    yield commands
    commands("stop", "--all")
