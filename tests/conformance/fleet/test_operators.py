"""Conformance of the platforms whose agents are objects of an operator of Kubernetes."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

pytest.importorskip("kubernetes", reason="the extra kubernetes is not installed")

from svc_trial_runner.fleet.adapters.operators.adaptdl import adl_adapter
from svc_trial_runner.fleet.adapters.operators.frameworkcontroller import (
    FrameworkWorkload,
    frameworkcontroller_adapter,
)
from svc_trial_runner.fleet.adapters.operators.kubeflow import kubeflow_adapter
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.ports import AdapterContext, PlatformAdapter
from svc_trial_runner.fleet.testing import INSTALLATION, POOL, PlatformConformance, PlatformStage
from tests.support.kubernetes.agents import IMAGE, KubernetesCluster, sleeping_cluster

Factory = Callable[[AdapterContext], PlatformAdapter]


class OperatorStage(PlatformStage):
    """Adapters of one platform on one cluster."""

    def __init__(
        self, cluster: KubernetesCluster, platform: str, factory: Factory, section: dict[str, Any]
    ) -> None:
        self.cluster = cluster
        self.platform = platform
        self.factory = factory
        self.section = section
        self.opened: list[PlatformAdapter] = []

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> PlatformAdapter:
        return self.open(pool, installation)

    def broken_adapter(self) -> PlatformAdapter:
        return self.open(POOL, INSTALLATION, namespace="no-such-one")

    def open(self, pool: str, installation: str, **options: object) -> PlatformAdapter:
        section = {**self.section, **options}
        context = self.cluster.context(pool, installation, self.platform, self.platform, section)
        self.opened.append(self.factory(context))
        return self.opened[-1]

    async def end_agent(self, name: AgentName) -> None:
        own = FrameworkWorkload({}).object_name(name)
        self.cluster.node.kill(own if self.platform == "frameworkcontroller" else str(name))


@asynccontextmanager
async def _stage(
    folder: Path, platform: str, factory: Factory, section: dict[str, Any]
) -> AsyncIterator[PlatformStage]:
    with sleeping_cluster(folder) as cluster:
        stage = OperatorStage(cluster, platform, factory, section)
        try:
            yield stage
        finally:
            for adapter in stage.opened:
                await adapter.aclose()


class TestKubeflow(PlatformConformance):
    limit_s: ClassVar[float] = 60.0

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        section = {"operator": "tf-operator", "worker": {"dockerImage": IMAGE}}
        return _stage(folder, "kubeflow", kubeflow_adapter, section)


class TestFrameworkController(PlatformConformance):
    limit_s: ClassVar[float] = 60.0

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        section = {"taskRoles": [{"name": "worker", "dockerImage": IMAGE}], "namespace": "tuning"}
        return _stage(folder, "frameworkcontroller", frameworkcontroller_adapter, section)


class TestAdaptDl(PlatformConformance):
    limit_s: ClassVar[float] = 60.0

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        section = {"dockerImage": IMAGE, "namespace": "tuning"}
        return _stage(folder, "adl", adl_adapter, section)
