import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from svc_trial_runner.adapters.agent_folder import trial_sdk_folder
from svc_trial_runner.adapters.local_processes import LocalProcesses
from svc_trial_runner.domain.claims import ProcessIdentity
from svc_trial_runner.domain.command import parse_python_command
from svc_trial_runner.ports import LaunchRequest

WAIT_S = 30.0
PYTHON = str(Path(sys.executable).parent)


class Stage:
    """Launcher with warm interpreters, and the process servers that it started."""

    def __init__(self) -> None:
        self.servers: list[ProcessIdentity] = []
        self.processes = LocalProcesses(
            trial_sdk_folder() / "warm.py", self.servers.append, os.getpid()
        )

    async def run(self, command: str, folder: Path, base: dict[str, str]) -> tuple[bool, int]:
        """Run a command to its end; return whether it was warm, and its wait status."""
        null = os.open(os.devnull, os.O_WRONLY)
        request = LaunchRequest(
            label="t",
            command=command,
            python=parse_python_command(command),
            code=str(folder),
            directory=str(folder),
            base=base,
            variables={},
            stdout=null,
            stderr=null,
        )
        process = await asyncio.wait_for(self.processes.launch(request), WAIT_S)
        os.close(null)
        status = await asyncio.wait_for(process.ended, WAIT_S)
        assert status is not None
        return process.warm, status


@pytest_asyncio.fixture
async def stage() -> AsyncIterator[Stage]:
    made = Stage()
    yield made
    await made.processes.aclose()


def base(**variables: str) -> dict[str, str]:
    return {"PATH": f"{PYTHON}:/usr/bin:/bin", **variables}


async def test_trials_of_one_kind_share_an_interpreter(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("pass")

    for variables in ({}, {"ORDINARY": "1"}, {"ORDINARY": "2"}):
        assert await stage.run("python3 t.py", tmp_path, base(**variables)) == (True, 0)

    assert len(stage.servers) == stage.processes.warm_count == 1


async def test_load_time_variables_and_folders_need_interpreters_of_their_own(
    stage: Stage, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    for folder in (tmp_path, tmp_path / "other"):
        (folder / "t.py").write_text("pass")

    await stage.run("python3 t.py", tmp_path, base())
    await stage.run("python3 t.py", tmp_path, base(OMP_NUM_THREADS="1"))
    await stage.run("python3 t.py", tmp_path / "other", base())

    assert len(stage.servers) == 3


async def test_command_that_needs_a_shell_starts_plain(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("pass")

    assert await stage.run("python3 t.py && exit 4", tmp_path, base()) == (False, 4 << 8)
    assert stage.processes.warm_count == 0


async def test_interpreter_that_cannot_be_warm_is_run_plainly(stage: Stage, tmp_path: Path) -> None:
    """Here `python3` is a script, which cannot become a warm interpreter."""
    fake = tmp_path / "python3"
    fake.write_text("#!/bin/sh\n[ $1 = t.py ] && exit 5\nexit 1\n")
    fake.chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin"}

    results = [await stage.run("python3 t.py", tmp_path, environment) for _ in range(5)]

    assert results == [(False, 5 << 8)] * 5
    # Three tries, then plain starts; the spawner is the fourth process.
    assert len(stage.servers) == 4


async def test_unknown_interpreter_is_left_to_the_shell(stage: Stage, tmp_path: Path) -> None:
    warm, status = await stage.run("python3.99 t.py", tmp_path, base())

    assert (warm, status) == (False, 127 << 8)


async def test_idle_interpreter_ends_and_a_busy_one_stays(stage: Stage, tmp_path: Path) -> None:
    (tmp_path / "t.py").write_text("pass")
    await stage.run("python3 t.py", tmp_path, base())

    stage.processes.release_idle(60)
    assert stage.processes.warm_count == 1
    stage.processes.release_idle(0)

    assert stage.processes.warm_count == 0
    assert await stage.run("python3 t.py", tmp_path, base()) == (True, 0)
