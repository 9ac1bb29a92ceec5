"""Conformance of adapters in child processes, with the platform `local` in the child."""

import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

from svc_trial_runner.fleet.adapters.isolated.adapter import IsolatedAdapter
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.testing import (
    INSTALLATION,
    OTHER_INSTALLATION,
    OTHER_POOL,
    POOL,
    PlatformConformance,
    PlatformStage,
)
from tests.support.isolated_platforms import isolated_adapter
from tests.support.local_platforms import local_context


class IsolatedStage(PlatformStage):
    """Folder of agents on this machine."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._opened: list[IsolatedAdapter] = []

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> IsolatedAdapter:
        self._opened.append(isolated_adapter(local_context(self._folder, installation, pool)))
        return self._opened[-1]

    async def end_agent(self, name: AgentName) -> None:
        process = json.loads((self._folder / "agents" / str(name) / "process.json").read_text())
        os.kill(process["pid"], signal.SIGTERM)

    def broken_adapter(self) -> IsolatedAdapter:
        options: dict[str, object] = {"slots": 0}
        context = local_context(self._folder, INSTALLATION, POOL, options)
        self._opened.append(isolated_adapter(context))
        return self._opened[-1]

    async def aclose(self) -> None:
        """End the agents and the children."""
        for pool in (POOL, OTHER_POOL):
            for installation in (INSTALLATION, OTHER_INSTALLATION):
                if any((self._folder / "agents").glob(f"nni-{installation}-{pool}-*")):
                    await self.adapter(pool, installation).clean()
        for adapter in self._opened:
            await adapter.aclose()


class TestIsolated(PlatformConformance):
    capacity: ClassVar[int | None] = 1

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(folder)


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[PlatformStage]:
    stage = IsolatedStage(folder)
    try:
        yield stage
    finally:
        await stage.aclose()
