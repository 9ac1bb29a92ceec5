"""Conformance of the platform `ray`, with sleeping agents and a cluster in memory.

`tests/integration/fleet/test_ray_conformance.py` runs the suite on a real cluster.
"""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

from svc_trial_runner.fleet.adapters.ray_actors.adapter import RayAdapter
from svc_trial_runner.fleet.adapters.ray_actors.cluster import ActorState
from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase
from svc_trial_runner.fleet.testing import (
    INSTALLATION,
    POOL,
    PlatformConformance,
    PlatformStage,
)
from tests.support.in_memory_ray import InMemoryRay, InMemoryRayCluster
from tests.support.ray_servers import RayAgents


class RayStage(PlatformStage):
    """Cluster with a folder of agents of its own."""

    def __init__(self, folder: Path) -> None:
        self._ray = InMemoryRay()
        self._agents = RayAgents("auto", folder)
        self._opened: dict[tuple[str, str], list[RayAdapter]] = {}

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> RayAdapter:
        opened = self._opened.setdefault((pool, installation), [])
        opened.append(self._adapter(pool, installation))
        return opened[-1]

    def _adapter(self, pool: str, installation: str) -> RayAdapter:
        return self._agents.adapter(pool, installation, InMemoryRayCluster(self._ray))

    async def end_agent(self, name: AgentName) -> None:
        self._ray.actors[str(name)] = ActorState(AgentPhase.ENDED, "node", "ended by the test")

    def broken_adapter(self) -> RayAdapter:
        return self._agents.adapter(POOL, INSTALLATION, numCpus=-1)

    async def aclose(self) -> None:
        """End what is left on the cluster."""
        for (pool, installation), adapters in self._opened.items():
            last = self._adapter(pool, installation)
            await last.clean()
            for adapter in [*adapters, last]:
                await adapter.aclose()


class TestRay(PlatformConformance):
    limit_s: ClassVar[float] = 60.0

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(folder)


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[PlatformStage]:
    stage = RayStage(folder)
    try:
        yield stage
    finally:
        await stage.aclose()
