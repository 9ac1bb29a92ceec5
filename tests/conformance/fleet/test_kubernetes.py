"""Conformance of the platform `kubernetes` over a server of recorded shapes with a node."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

from svc_trial_runner.fleet.adapters.kubernetes.adapter import KubernetesAdapter
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, PlatformConformance, PlatformStage
from tests.support.kubernetes.agents import KubernetesCluster, sleeping_cluster


class KubernetesStage(PlatformStage):
    """Adapters of one cluster."""

    def __init__(self, cluster: KubernetesCluster) -> None:
        self.cluster = cluster
        self.opened: list[KubernetesAdapter] = []

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> KubernetesAdapter:
        self.opened.append(self.cluster.adapter(pool, installation))
        return self.opened[-1]

    async def end_agent(self, name: AgentName) -> None:
        self.cluster.node.kill(str(name))

    def broken_adapter(self) -> KubernetesAdapter:
        self.opened.append(self.cluster.adapter(POOL, INSTALLATION, namespace="no-such-one"))
        return self.opened[-1]


class TestKubernetes(PlatformConformance):
    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        return _stage(folder)

    limit_s: ClassVar[float] = 60.0


@asynccontextmanager
async def _stage(folder: Path) -> AsyncIterator[PlatformStage]:
    with sleeping_cluster(folder) as cluster:
        stage = KubernetesStage(cluster)
        try:
            yield stage
        finally:
            for adapter in stage.opened:
                await adapter.aclose()
