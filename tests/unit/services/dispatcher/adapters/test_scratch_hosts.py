from __future__ import annotations

import json
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.client_environment import ENVIRONMENT_NAME
from svc_common.errors import FailedPreconditionError
from svc_dispatcher.adapters.host_environment import client_side
from svc_dispatcher.adapters.scratch_hosts import ScratchHostLauncher
from svc_dispatcher.domain import answers, commands
from svc_dispatcher.domain.values import ExperimentSetup, Position
from svc_dispatcher.ports import HostSink

INHERITED = {"FROM": "service"}


class Recorder:
    """`HostLauncher` and `AlgorithmHost` that record their arguments."""

    def __init__(self) -> None:
        self.setup: ExperimentSetup | None = None
        self.received: list[commands.Command] = []
        self.refuses = False

    async def launch(self, setup: ExperimentSetup, sink: HostSink, *, eager: bool) -> Recorder:
        self.setup = setup
        if self.refuses:
            raise FailedPreconditionError("no")
        return self

    def send(self, commands: Sequence[commands.Command]) -> None:
        self.received += commands

    async def aclose(self) -> None:
        assert Path(self.folder).is_dir()

    @property
    def folder(self) -> str:
        assert self.setup is not None
        return self.setup.directory


class NullSink:
    def on_outputs(self, outputs: Sequence[answers.Output]) -> None:
        pass

    def on_end(self, reason: str) -> None:
        pass


def setup(directory: Path, interpreter: str = sys.executable) -> ExperimentSetup:
    return ExperimentSetup(
        experiment_id="exp",
        directory=str(directory),
        interpreter=interpreter,
        tuner=None,
        assessor=None,
        advisor=None,
        search_space=None,
        seed=1,
        log_level="info",
    )


async def test_host_works_in_a_folder_that_is_removed_with_it(tmp_path: Path) -> None:
    inner = Recorder()
    given = setup(tmp_path)

    host = await ScratchHostLauncher(inner, INHERITED).launch(given, NullSink(), eager=True)
    host.send([commands.Initialize(Position(1, 0), given, None, 1)])

    (initialize,) = inner.received
    assert isinstance(initialize, commands.Initialize)
    assert initialize.setup == replace(given, directory=inner.folder)
    assert inner.folder != str(tmp_path)
    assert stat.S_IMODE(Path(inner.folder).stat().st_mode) == 0o700
    await host.aclose()
    assert not Path(inner.folder).exists()
    assert list(tmp_path.iterdir()) == []


async def test_host_runs_with_the_environment_of_the_client(tmp_path: Path) -> None:
    inner = Recorder()
    (tmp_path / ENVIRONMENT_NAME).write_text(
        json.dumps({"environment": {"FROM": "client"}, "interpreter": sys.executable})
    )

    host = await ScratchHostLauncher(inner, INHERITED).launch(
        setup(tmp_path), NullSink(), eager=True
    )

    assert inner.setup is not None
    client = client_side(inner.setup, {})
    assert (client.environment, client.interpreter) == ({"FROM": "client"}, sys.executable)
    await host.aclose()


async def test_missing_interpreter_is_replaced_by_the_dispatchers(tmp_path: Path) -> None:
    inner = Recorder()
    away = setup(tmp_path / "gone", "/nowhere/python3")

    host = await ScratchHostLauncher(inner, INHERITED).launch(away, NullSink(), eager=True)

    assert inner.setup is not None
    client = client_side(inner.setup, {})
    assert (client.environment, client.interpreter) == (INHERITED, "")
    await host.aclose()


async def test_folder_is_removed_when_the_host_cannot_be_started(tmp_path: Path) -> None:
    inner = Recorder()
    inner.refuses = True

    with pytest.raises(FailedPreconditionError):
        await ScratchHostLauncher(inner, INHERITED).launch(setup(tmp_path), NullSink(), eager=True)

    assert not Path(inner.folder).exists()


async def test_damaged_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / ENVIRONMENT_NAME).write_text("[")

    with pytest.raises(FailedPreconditionError, match="no folder for the replay"):
        await ScratchHostLauncher(Recorder(), INHERITED).launch(
            setup(tmp_path), NullSink(), eager=True
        )
