from __future__ import annotations

import json
import stat
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.errors import FailedPreconditionError
from svc_dispatcher.adapters.host_environment import ENVIRONMENT_NAME, client_side
from svc_dispatcher.adapters.scratch_hosts import ScratchLauncher
from svc_dispatcher.domain import answers, commands
from svc_dispatcher.domain.values import ExperimentSetup, Position
from svc_dispatcher.ports import HostSink

INHERITED = {"FROM": "service"}


class Recorder:
    """`HostLauncher` and `AlgorithmHost` that keep what they are told."""

    def __init__(self) -> None:
        self.setup: ExperimentSetup | None = None
        self.told: list[commands.Command] = []
        self.refuses = False

    async def launch(self, setup: ExperimentSetup, sink: HostSink, *, eager: bool) -> Recorder:
        self.setup = setup
        if self.refuses:
            raise FailedPreconditionError("no")
        return self

    def send(self, commands: Sequence[commands.Command]) -> None:
        self.told += commands

    async def aclose(self) -> None:
        assert Path(self.folder).is_dir()

    @property
    def folder(self) -> str:
        assert self.setup is not None
        return self.setup.directory


class Deaf:
    def said(self, outputs: Sequence[answers.Output]) -> None:
        pass

    def ended(self, reason: str) -> None:
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


async def test_host_is_told_of_a_folder_of_its_own_that_ends_with_it(tmp_path: Path) -> None:
    inner = Recorder()
    given = setup(tmp_path)

    host = await ScratchLauncher(inner, INHERITED).launch(given, Deaf(), eager=True)
    host.send([commands.Initialize(Position(1, 0), given, None, 1)])

    (initialize,) = inner.told
    assert isinstance(initialize, commands.Initialize)
    assert initialize.setup == replace(given, directory=inner.folder)
    assert inner.folder != str(tmp_path)
    assert stat.S_IMODE(Path(inner.folder).stat().st_mode) == 0o700
    await host.aclose()
    assert not Path(inner.folder).exists()
    assert list(tmp_path.iterdir()) == []


async def test_host_runs_with_what_the_client_left(tmp_path: Path) -> None:
    inner = Recorder()
    (tmp_path / ENVIRONMENT_NAME).write_text(
        json.dumps({"environment": {"FROM": "client"}, "interpreter": sys.executable})
    )

    host = await ScratchLauncher(inner, INHERITED).launch(setup(tmp_path), Deaf(), eager=True)

    assert inner.setup is not None
    client = client_side(inner.setup, {})
    assert (client.environment, client.interpreter) == ({"FROM": "client"}, sys.executable)
    await host.aclose()


async def test_interpreter_that_is_not_here_is_replaced_by_our_own(tmp_path: Path) -> None:
    inner = Recorder()
    away = setup(tmp_path / "gone", "/nowhere/python3")

    host = await ScratchLauncher(inner, INHERITED).launch(away, Deaf(), eager=True)

    assert inner.setup is not None
    client = client_side(inner.setup, {})
    assert (client.environment, client.interpreter) == (INHERITED, "")
    await host.aclose()


async def test_folder_is_removed_when_the_host_cannot_be_started(tmp_path: Path) -> None:
    inner = Recorder()
    inner.refuses = True

    with pytest.raises(FailedPreconditionError):
        await ScratchLauncher(inner, INHERITED).launch(setup(tmp_path), Deaf(), eager=True)

    assert not Path(inner.folder).exists()


async def test_damaged_environment_is_refused(tmp_path: Path) -> None:
    (tmp_path / ENVIRONMENT_NAME).write_text("[")

    with pytest.raises(FailedPreconditionError, match="no folder for the replay"):
        await ScratchLauncher(Recorder(), INHERITED).launch(setup(tmp_path), Deaf(), eager=True)
