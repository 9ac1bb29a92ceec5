"""Conformance of the platform `slurm` over a real Slurm of one node."""

from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from svc_trial_runner.fleet.adapters.slurm.adapter import SlurmAdapter
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, PlatformConformance, PlatformStage
from tests.support.slurm_agents import SlurmAgents
from tests.support.slurm_cluster import SlurmCluster, slurm_cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    """Cluster of all tests of this module; each has its own folder of agents."""
    with slurm_cluster() as one:
        yield one


class SlurmStage(PlatformStage):
    """Adapters of a cluster that share one folder of agents."""

    def __init__(self, agents: SlurmAgents) -> None:
        self.agents = agents
        self.opened: list[SlurmAdapter] = []

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> SlurmAdapter:
        adapter = self.agents.adapter(pool, installation)
        self.opened.append(adapter)
        return adapter

    async def end_agent(self, name: AgentName) -> None:
        self.agents.cancel(name)

    def broken_adapter(self) -> SlurmAdapter:
        return self.agents.adapter(POOL, INSTALLATION, partition="no-such-partition")


class TestSlurm(PlatformConformance):
    limit_s: ClassVar[float] = 120.0

    @pytest.fixture(autouse=True)
    def _use(self, cluster: SlurmCluster) -> None:
        self.cluster = cluster

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(self.cluster, folder)


@asynccontextmanager
async def _stage(cluster: SlurmCluster, folder: Path) -> AsyncIterator[PlatformStage]:
    stage = SlurmStage(SlurmAgents(cluster, folder))
    try:
        yield stage
    finally:
        for adapter in stage.opened:
            await adapter.clean()
            await adapter.aclose()
