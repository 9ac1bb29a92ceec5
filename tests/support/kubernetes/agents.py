"""Adapters of a cluster of tests, whose agents sleep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from svc_trial_runner.fleet.adapters.kubernetes.adapter import KubernetesAdapter
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.ports import AdapterContext
from tests.support.kubernetes.api_server import ApiServer, api_server
from tests.support.kubernetes.kubelet import Kubelet, kubelet
from tests.support.local_platforms import front_context

IMAGE = "registry.example.org/trials:1"
SLEEPER = "#!/bin/sh\nexec sleep 1000000\n"


class KubernetesCluster:
    """API server and node of a test."""

    def __init__(self, server: ApiServer, node: Kubelet, folder: Path) -> None:
        self.server = server
        self.node = node
        self.folder = folder
        self.kubeconfig = server.kubeconfig(folder)

    def adapter(
        self, pool: str, installation: str, key: str = "kubernetes", **options: object
    ) -> KubernetesAdapter:
        """Return a new adapter of a platform of a pool, with further options."""
        section = {"image": IMAGE, **options}
        return KubernetesAdapter(self.context(pool, installation, key, "kubernetes", section))

    def context(
        self,
        pool: str,
        installation: str,
        key: str,
        platform: str,
        section: Mapping[str, object],
    ) -> AdapterContext:
        """Return the context of a platform whose section leads to this cluster."""
        access = {"kubeconfig": str(self.kubeconfig), "graceSeconds": 4}
        return front_context(
            self.folder / key, installation, pool, PlatformSection(platform, {**access, **section})
        )


@contextmanager
def sleeping_cluster(folder: Path) -> Iterator[KubernetesCluster]:
    """Serve a cluster whose only image has a `python3` that sleeps."""
    programs = folder / "image"
    programs.mkdir()
    program = programs / "python3"
    program.write_text(SLEEPER)
    program.chmod(0o755)
    pods = folder / "pods"
    pods.mkdir()
    with api_server() as server, kubelet(server.port, pods, f"{programs}:/usr/bin:/bin") as node:
        yield KubernetesCluster(server, node, folder)
