"""Ways to bus and manager."""

import socket

import pytest

from svc_trial_runner.agent_settings import ConnectionKind
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.slurm.listings import ComputeNode
from svc_trial_runner.fleet.adapters.slurm.reachability import connection, is_here, way_in
from svc_trial_runner.fleet.ports import FrontEndpoint, InstallationEndpoints, PlatformError

LOOPBACK = InstallationEndpoints("nats://127.0.0.1:4222", "127.0.0.1:50051")
TLS = InstallationEndpoints("tls://head:8081", "head:8081")
HERE = ComputeNode("n1", address="127.0.0.1", host=socket.gethostname())
# An address of documentation: no machine has it.
ELSEWHERE = ComputeNode("n2", address="192.0.2.7", host="n2")


async def test_node_with_an_address_of_this_machine_is_here() -> None:
    assert await is_here(HERE)


async def test_node_with_another_address_is_not_here() -> None:
    assert not await is_here(ELSEWHERE)


class OpenFront:
    """Front that is open at one address."""

    def __init__(self, address: str = "10.0.0.7:8081") -> None:
        self.address = address

    async def open(self) -> FrontEndpoint:
        return FrontEndpoint(self.address, "authority")


async def test_nodes_here_reach_loopback() -> None:
    found = await way_in(LOOPBACK, [HERE], NoFront(), commands_are_here=True)

    assert found == connection(LOOPBACK)


@pytest.mark.parametrize(("nodes", "here"), [([HERE, ELSEWHERE], True), ([HERE], False)])
async def test_agents_elsewhere_come_in_through_the_front(
    nodes: list[ComputeNode], here: bool
) -> None:
    found = await way_in(LOOPBACK, nodes, OpenFront(), commands_are_here=here)

    assert found.kind is ConnectionKind.TLS
    assert (found.bus, found.manager) == ("tls://10.0.0.7:8081", "10.0.0.7:8081")
    assert found.authority == "authority"


async def test_front_that_cannot_be_opened_is_an_error_with_the_nodes() -> None:
    with pytest.raises(PlatformError, match=r"\(n2\) need the TLS front: ") as caught:
        await way_in(LOOPBACK, [ELSEWHERE], NoFront(), commands_are_here=True)

    assert caught.value.permanent


@pytest.mark.parametrize("address", ["127.0.0.1:8081", "[::1]:8081", "localhost:8081"])
async def test_front_on_loopback_is_an_error_that_names_the_setting(address: str) -> None:
    with pytest.raises(PlatformError, match="do not reach the TLS front") as caught:
        await way_in(LOOPBACK, [ELSEWHERE], OpenFront(address), commands_are_here=True)

    assert "NNI_FRONT_HOST" in caught.value.remedy


async def test_nodes_elsewhere_reach_an_endpoint_with_tls() -> None:
    found = await way_in(TLS, [ELSEWHERE], NoFront(), commands_are_here=False)

    assert found == connection(TLS)


def test_connection_is_that_of_the_endpoints() -> None:
    assert connection(LOOPBACK).kind is ConnectionKind.DIRECT
    assert connection(TLS).kind is ConnectionKind.TLS
