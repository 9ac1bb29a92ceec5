"""Adapters of a Slurm cluster of tests, whose agents sleep."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.slurm.adapter import SlurmAdapter
from svc_trial_runner.fleet.domain.agents import AgentName, PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext, FrontEndpoint, InstallationEndpoints
from tests.support.sleeping_agents import SleepingAgents
from tests.support.slurm_cluster import SlurmCluster

ENDPOINTS = InstallationEndpoints("nats://127.0.0.1:4222", "127.0.0.1:50051")


class _OpenFront:
    """Front that is open at an address that no sleeping agent asks."""

    async def open(self) -> FrontEndpoint:
        return FrontEndpoint("127.0.0.1:9", "authority")


class SlurmAgents:
    """Folder of agents on the file system that a cluster of one machine shares with itself.

    Args:
        cluster: that runs the jobs.
        folder: of the test.
        login: options of a login node; empty: Slurm's commands are called here.
    """

    def __init__(
        self, cluster: SlurmCluster, folder: Path, login: Mapping[str, object] | None = None
    ) -> None:
        self.cluster = cluster
        self._login = dict(login or {})
        self.home = folder / "a home"
        self._folder = folder
        self._bundles = SleepingAgents(folder)

    def adapter(self, pool: str, installation: str, **options: object) -> SlurmAdapter:
        """Return a new adapter of a pool with further options."""
        section = {
            "home": str(self.home),
            "slurmConf": str(self.cluster.configuration),
            "memory": "10M",
            "pollIntervalSeconds": 0.2,
            **self._login,
            **options,
        }
        private = self._folder / installation / pool
        private.mkdir(parents=True, exist_ok=True)
        return SlurmAdapter(
            AdapterContext(
                installation,
                pool,
                PlatformSection("slurm", section),
                ENDPOINTS,
                self._bundles,
                private,
                _OpenFront() if self._login else NoFront(),
            )
        )

    def cancel(self, name: AgentName) -> None:
        """End the job of an agent, as its user could."""
        for line in self.cluster.output("squeue", "-hr", "-o", "%i %j").splitlines():
            job_id, job_name = line.split()
            base, _, ending = job_name.partition(".")
            number = int(base.rpartition("-")[2])
            if ending:
                number += int(job_id.partition("_")[2])
            if f"{base.rpartition('-')[0]}-{number}" == str(name):
                self.cluster.output("scancel", job_id)
