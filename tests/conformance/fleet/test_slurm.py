"""Conformance of the platform `slurm` over a real Slurm of one node, here and on a login node."""

from collections.abc import AsyncIterator, Iterator, Mapping
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
        self.pools: set[tuple[str, str]] = set()

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> SlurmAdapter:
        adapter = self.agents.adapter(pool, installation)
        self.opened.append(adapter)
        self.pools.add((pool, installation))
        return adapter

    async def end_agent(self, name: AgentName) -> None:
        self.agents.cancel(name)

    def broken_adapter(self) -> SlurmAdapter:
        return self.agents.adapter(POOL, INSTALLATION, partition="no-such-partition")


class TestSlurm(PlatformConformance):
    limit_s: ClassVar[float] = 240.0

    @pytest.fixture(autouse=True)
    def _use(self, cluster: SlurmCluster) -> None:
        self.cluster = cluster

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(self.cluster, folder)


class TestSlurmOnALoginNode(TestSlurm):
    """Slurm's commands over SSH; agents would come in by the relay there."""

    @pytest.fixture(autouse=True)
    def _log_in(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
        pytest.importorskip("asyncssh", reason="the extra remote is not installed")
        from tests.support.remote_machines import PASSWORD, USER, Machines

        folder = tmp_path / "login node"
        folder.mkdir()
        # The file of accepted host keys is there.
        monkeypatch.setenv("NNI_HOME", str(folder))
        machines = Machines(folder)
        machines.start()
        self.login = {
            "host": "127.0.0.1",
            "port": machines.servers[0].port,
            "user": USER,
            "password": PASSWORD,
            "hostKeyPolicy": "accept-new",
        }
        yield
        machines.close()

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(self.cluster, folder, self.login)


@asynccontextmanager
async def _stage(
    cluster: SlurmCluster, folder: Path, login: Mapping[str, object] | None = None
) -> AsyncIterator[PlatformStage]:
    stage = SlurmStage(SlurmAgents(cluster, folder, login))
    try:
        yield stage
    finally:
        for adapter in stage.opened:
            await adapter.aclose()
        for pool in stage.pools:
            adapter = stage.agents.adapter(*pool)
            await adapter.clean()
            await adapter.aclose()
