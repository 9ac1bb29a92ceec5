"""Connections from compute nodes to bus and manager, which may be on another machine."""

import asyncio
import socket
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Final, Protocol

from svc_common import environment
from svc_common.access.transport import is_loopback
from svc_trial_runner.agent_settings import ConnectionKind, ConnectionSettings
from svc_trial_runner.fleet.adapters.job_agents import tls_connection
from svc_trial_runner.fleet.adapters.slurm.listings import ComputeNode
from svc_trial_runner.fleet.ports import (
    Front,
    FrontEndpoint,
    InstallationEndpoints,
    PlatformError,
)

REMEDY: Final = (
    f"set {environment.NNI_FRONT_HOST} to the name or address by which the nodes reach this machine"
    ", and start NNI's services again; or set nniManagerIp in the configuration"
)
_TLS: Final = "tls://"
_SHOWN: Final = 3
"""Names of nodes in a message."""
_PEERS: Final = 3
"""Nodes that a relay is asked to be reached by: the first one may be the login node itself."""


async def is_here(node: ComputeNode) -> bool:
    """Return whether a node is this machine, by binding its address."""
    address = node.address or node.host or node.name
    return await asyncio.to_thread(can_be_bound, address)


def can_be_bound(address: str) -> bool:
    """Return whether an address or name is one of this machine, by binding a socket to it."""
    with suppress(OSError):
        for family, kind, protocol, _, place in socket.getaddrinfo(
            address, 0, type=socket.SOCK_STREAM
        ):
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(place)
                return True
    return False


class LoginRelay(Protocol):
    """Interface of a login node that passes connections of compute nodes on to the TLS front."""

    @property
    def relay_address(self) -> str:
        """`host:port` on the network of the nodes; empty: it was never open."""
        ...

    async def open_relay(self, python: str, front_port: int, peers: Iterable[str]) -> str:
        """Open the relay unless it is open; return its `host:port` on the network of the nodes.

        Raises:
            PlatformError: the login node cannot be connected, or refuses.
        """
        ...


async def relayed(
    endpoints: InstallationEndpoints,
    nodes: Sequence[ComputeNode],
    front: Front,
    relay: LoginRelay,
    python: str,
) -> ConnectionSettings:
    """Return how agents reach bus and manager through a login node; open TLS front and relay.

    Args:
        endpoints: of bus and manager.
        nodes: on which agents may run.
        front: to which the relay leads.
        relay: of the login node.
        python: interpreter of the login node.

    Raises:
        PlatformError: front or relay cannot be opened.
    """
    if endpoints.bus.startswith(_TLS):
        return connection(endpoints)  # of a deployment, which other machines reach
    endpoint = await front.open()
    port = int(endpoint.address.rpartition(":")[2])
    peers = [node.address or node.host or node.name for node in nodes[:_PEERS]]
    address = await relay.open_relay(python, port, peers)
    return tls_connection(FrontEndpoint(address, endpoint.authority))


async def way_in(
    endpoints: InstallationEndpoints,
    nodes: Sequence[ComputeNode],
    front: Front,
    *,
    commands_are_here: bool,
) -> ConnectionSettings:
    """Return how agents on some nodes reach bus and manager; open the TLS front if they need it.

    If one of the nodes is another machine, all agents use the front: a job does not know its node
    before it starts.

    Args:
        endpoints: of bus and manager.
        nodes: on which agents may run.
        front: way in from other machines.
        commands_are_here: True if Slurm's commands run on this machine.

    Raises:
        PlatformError: a node is another machine, and the front cannot be opened, or has an address
            that other machines do not reach.
    """
    if endpoints.bus.startswith(_TLS):
        return connection(endpoints)
    elsewhere: list[str] = []
    for node in nodes:  # each one may be a query of the DNS, and a cluster has thousands
        if not await is_here(node):
            elsewhere.append(node.name)
        if len(elsewhere) > _SHOWN:
            break
    if commands_are_here and not elsewhere:
        return connection(endpoints)
    names = ", ".join(elsewhere[:_SHOWN]) + (", ..." if len(elsewhere) > _SHOWN else "")
    where = f"agents on other machines ({names or 'nodes of the cluster'})"
    try:
        endpoint = await front.open()
    except PlatformError as error:
        raise PlatformError(
            f"{where} need the TLS front: {error.message}",
            error.remedy or REMEDY,
            permanent=error.permanent,
        ) from error
    if is_loopback(endpoint.address.rpartition(":")[0].strip("[]")):
        raise PlatformError(
            f"{where} do not reach the TLS front at {endpoint.address}", REMEDY, permanent=True
        )
    return tls_connection(endpoint)


def connection(endpoints: InstallationEndpoints) -> ConnectionSettings:
    """Return settings of a direct connection to bus and manager, with TLS if the bus has it."""
    kind = ConnectionKind.TLS if endpoints.bus.startswith(_TLS) else ConnectionKind.DIRECT
    return ConnectionSettings(kind, endpoints.bus, endpoints.manager_grpc)
