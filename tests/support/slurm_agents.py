"""Adapters of a Slurm cluster of tests, whose agents sleep."""

from __future__ import annotations

from pathlib import Path

from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.slurm.adapter import SlurmAdapter
from svc_trial_runner.fleet.domain.agents import AgentName, PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext, InstallationEndpoints
from tests.support.sleeping_agents import SleepingAgents
from tests.support.slurm_cluster import SlurmCluster

ENDPOINTS = InstallationEndpoints("nats://127.0.0.1:4222", "127.0.0.1:50051")


class SlurmAgents:
    """Folder of agents on the file system that a cluster of one machine shares with itself.

    Args:
        cluster: that runs the jobs.
        folder: of the test.
    """

    def __init__(self, cluster: SlurmCluster, folder: Path) -> None:
        self.cluster = cluster
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
            **options,
        }
        return SlurmAdapter(
            AdapterContext(
                installation,
                pool,
                PlatformSection("slurm", section),
                ENDPOINTS,
                self._bundles,
                self._folder,
                NoFront(),
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
