"""Conformance of the platform `local`, with sleeping processes in place of agents."""

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

from svc_trial_runner.fleet.adapters.local_agents import LocalAgentsAdapter
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.testing import (
    INSTALLATION,
    OTHER_INSTALLATION,
    OTHER_POOL,
    POOL,
    PlatformConformance,
    PlatformStage,
)
from tests.support.local_platforms import SLEEPER, local_context


class LocalStage(PlatformStage):
    """Folder of agents on this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> LocalAgentsAdapter:
        return LocalAgentsAdapter(local_context(self._folder, installation, pool), SLEEPER)

    async def end_agent(self, name: AgentName) -> None:
        process = json.loads((self._folder / "agents" / str(name) / "process.json").read_text())
        os.kill(process["pid"], signal.SIGTERM)

    def broken_adapter(self) -> LocalAgentsAdapter:
        options: dict[str, object] = {"slots": 0, "gpuIndices": "a"}
        return LocalAgentsAdapter(local_context(self._folder, INSTALLATION, POOL, options), SLEEPER)


class TestLocalAgents(PlatformConformance):
    capacity: ClassVar[int | None] = 1

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(folder)


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[PlatformStage]:
    stage = LocalStage(folder)
    try:
        yield stage
    finally:
        for pool in (POOL, OTHER_POOL):
            for installation in (INSTALLATION, OTHER_INSTALLATION):
                await stage.adapter(pool, installation).clean()
