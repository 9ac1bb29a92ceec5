"""Ray cluster of tests, of several nodes on this machine, and adapters whose agents sleep."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.ray_actors.adapter import RayAdapter
from svc_trial_runner.fleet.adapters.ray_actors.cluster import RayCluster
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext, InstallationEndpoints
from tests.support.sleeping_agents import SleepingAgents

ENDPOINTS = InstallationEndpoints("nats://127.0.0.1:4222", "127.0.0.1:50051")

BUSY_MACHINE_LIMITS: Final = {
    "health_check_timeout_ms": 60_000,
    "agent_register_timeout_ms": 300_000,
}
"""Waits for a node and its helpers. With Ray's own, 10 s and less than 2 min, nodes that get no
processor for a while are declared dead, and end. A killed one is still found in 15 s."""


@contextmanager
def ray_cluster() -> Iterator[Any]:
    """Yield a cluster of two nodes with two CPUs each, to which this process is connected."""
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 2,
            "include_dashboard": False,
            "_system_config": BUSY_MACHINE_LIMITS,
        },
    )
    cluster.add_node(num_cpus=2, resources={"special": 1})
    ray.init(cluster.address, namespace="nni", log_to_driver=False, logging_level="WARNING")
    try:
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


class RayAgents:
    """Folder of agents on the file system of the nodes, which are all on this machine.

    Args:
        address: of the cluster.
        folder: of the test.
    """

    def __init__(self, address: str, folder: Path) -> None:
        self.address = address
        self.home = folder / "a home"
        self._folder = folder
        self._bundles = SleepingAgents(folder)

    def context(self, pool: str, installation: str, **options: object) -> AdapterContext:
        """Return the context of an adapter with further options."""
        section = {
            "address": self.address,
            "home": str(self.home),
            "numCpus": 0.1,
            "pollIntervalSeconds": 0.1,
            **options,
        }
        return AdapterContext(
            installation,
            pool,
            PlatformSection("ray", section),
            ENDPOINTS,
            self._bundles,
            self._folder,
            NoFront(),
        )

    def adapter(
        self,
        pool: str,
        installation: str,
        cluster: RayCluster | None = None,
        **options: object,
    ) -> RayAdapter:
        """Return a new adapter of a pool.

        Args:
            pool: whose agents it launches.
            installation: as above.
            cluster: None: that of the address.
            options: of the section.
        """
        return RayAdapter(self.context(pool, installation, **options), cluster)
