"""Parts of tests that run experiments with real services and agents in pods."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.kubernetes.api_server import ApiServer
from tests.support.kubernetes.kubelet import Kubelet, kubelet
from tests.support.local_shape import LocalShape, running_shape
from tests.support.ports import free_port
from tests.support.servers import require_binary
from tests.support.wait import until


@contextmanager
def agent_node(server: ApiServer, folder: Path) -> Iterator[Kubelet]:
    """Run a node whose only image is this interpreter's environment, which has the agent."""
    pods = folder / "pods"
    pods.mkdir()
    beside = Path(sys.executable).parent
    with kubelet(server.port, pods, f"{beside}{os.pathsep}/usr/bin{os.pathsep}/bin") as node:
        yield node


@contextmanager
def shape_with_front(home: Path) -> Iterator[LocalShape]:
    """Start the services in a home folder, with a TLS front on loopback."""
    require_binary("nats-server")
    front = {"NNI_FRONT_HOST": "127.0.0.1", "NNI_FRONT_PORT": str(free_port())}
    with running_shape(home, **front) as shape:
        yield shape


def wait_until_empty(server: ApiServer, kind: str, timeout_s: float) -> None:
    """Wait until a namespace has no object of a kind, no pod and no secret."""
    kinds = (kind, "pods", "secrets")
    until(
        lambda: not any(server.objects.list(one)[0] for one in kinds),
        timeout_s,
        "an empty namespace",
    )
