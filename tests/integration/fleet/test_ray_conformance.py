"""Conformance of the platform `ray` on a cluster of two nodes, with sleeping agents."""

import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from svc_trial_runner.fleet.adapters.ray_actors.adapter import RayAdapter
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.testing import (
    INSTALLATION,
    POOL,
    PlatformConformance,
    PlatformStage,
)
from tests.support.ray_servers import RayAgents, ray_cluster

pytest.importorskip("ray", reason="the platform ray is an extra")
ADDRESSES: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def cluster() -> Iterator[None]:
    """Run a cluster while the tests of this module do."""
    with ray_cluster() as running:
        ADDRESSES[:] = [running.address]
        yield


class RayStage(PlatformStage):
    """Cluster with a folder of agents of its own."""

    def __init__(self, folder: Path) -> None:
        self._agents = RayAgents(ADDRESSES[0], folder)
        self._opened: dict[tuple[str, str], list[RayAdapter]] = {}

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> RayAdapter:
        opened = self._opened.setdefault((pool, installation), [])
        opened.append(self._agents.adapter(pool, installation))
        return opened[-1]

    async def end_agent(self, name: AgentName) -> None:
        folder = self._agents.home / "agents" / str(name)
        os.kill(json.loads((folder / "process.json").read_text())["pid"], signal.SIGTERM)

    def broken_adapter(self) -> RayAdapter:
        return self._agents.adapter(POOL, INSTALLATION, numCpus=-1)

    async def aclose(self) -> None:
        """End what is left on the cluster."""
        for (pool, installation), adapters in self._opened.items():
            last = self._agents.adapter(pool, installation)
            await last.clean()
            for adapter in [*adapters, last]:
                await adapter.aclose()


class TestRayCluster(PlatformConformance):
    limit_s: ClassVar[float] = 240.0

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(folder)


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[PlatformStage]:
    stage = RayStage(folder)
    try:
        yield stage
    finally:
        await stage.aclose()
