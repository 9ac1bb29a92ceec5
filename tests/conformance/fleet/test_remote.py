"""Conformance of the platform `remote` over real SSH servers on this machine."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

pytest.importorskip("asyncssh", reason="the extra remote is not installed")

from svc_trial_runner.fleet.adapters.remote.adapter import RemoteAdapter
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, PlatformConformance, PlatformStage
from tests.support.remote_machines import Machines


class RemoteStage(PlatformStage):
    """Two machines."""

    def __init__(self, machines: Machines) -> None:
        self.machines = machines
        self.adapters: list[RemoteAdapter] = []

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> RemoteAdapter:
        return self._opened(self.machines.adapter(pool=pool, installation=installation))

    async def end_agent(self, name: AgentName) -> None:
        self.machines.kill_agent(name)

    def broken_adapter(self) -> RemoteAdapter:
        wrong = self.machines.entry(0, password="wrong")
        return self._opened(self.machines.adapter(wrong))

    def _opened(self, adapter: RemoteAdapter) -> RemoteAdapter:
        self.adapters.append(adapter)
        return adapter


class TestRemotePlatform(PlatformConformance):
    capacity: ClassVar[int | None] = 2

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(folder)


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[PlatformStage]:
    machines = Machines(folder, count=2)
    try:
        machines.start()
        stage = RemoteStage(machines)
        yield stage
        for adapter in stage.adapters:
            await adapter.aclose()
    finally:
        machines.close()
