"""Ways from compute nodes to bus and manager, which may be on another machine."""

import asyncio
import socket
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from svc_trial_runner.agent_settings import ConnectionKind, ConnectionSettings
from svc_trial_runner.fleet.adapters.slurm.listings import ComputeNode
from svc_trial_runner.fleet.domain.agents import PlatformProblem
from svc_trial_runner.fleet.ports import InstallationEndpoints

_TLS: Final = "tls://"


async def is_here(node: ComputeNode) -> bool:
    """Return whether a node is this machine: its address can be bound here."""
    address = node.address or node.host or node.name
    return await asyncio.to_thread(can_be_bound, address)


def can_be_bound(address: str) -> bool:
    """Return whether an address is one of this machine."""
    with suppress(OSError):
        for family, kind, protocol, _, place in socket.getaddrinfo(
            address, 0, type=socket.SOCK_STREAM
        ):
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(place)
                return True
    return False


async def unreachable(
    endpoints: InstallationEndpoints, nodes: Sequence[ComputeNode], *, commands_are_here: bool
) -> list[PlatformProblem]:
    """Return a problem if agents on the nodes cannot reach bus and manager.

    Args:
        endpoints: of bus and manager.
        nodes: on which agents may run.
        commands_are_here: True if Slurm's commands run on this machine.
    """
    if endpoints.bus.startswith(_TLS):
        return []
    elsewhere = [node.name for node in nodes if not await is_here(node)]
    if commands_are_here and not elsewhere:
        return []
    names = ", ".join(elsewhere[:3]) + (", ..." if len(elsewhere) > 3 else "")  # noqa: PLR2004 - a few
    return [
        PlatformProblem(
            "platform",
            "must have compute nodes that reach bus and manager, which listen on loopback only",
            f"slurm, with nodes on other machines: {names}" if names else "slurm",
            "start the installation on the node itself, or use the platform remote; agents on"
            " other machines need an endpoint with TLS, which this version does not open",
        )
    ]


def connection(endpoints: InstallationEndpoints) -> ConnectionSettings:
    """Return how agents reach bus and manager."""
    kind = ConnectionKind.TLS if endpoints.bus.startswith(_TLS) else ConnectionKind.DIRECT
    return ConnectionSettings(kind, endpoints.bus, endpoints.manager_grpc)
