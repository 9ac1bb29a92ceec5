"""Ways to bus and manager."""

import socket
from collections.abc import Iterable

import pytest

from svc_trial_runner.agent_settings import ConnectionKind
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.slurm.listings import ComputeNode
from svc_trial_runner.fleet.adapters.slurm.reachability import (
    connection,
    is_here,
    relayed,
    way_in,
)
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


@pytest.mark.parametrize(
    "node", [ComputeNode("192.0.2.7", host="127.0.0.1"), ComputeNode("127.0.0.1")]
)
async def test_node_without_an_address_is_found_by_host_or_name(node: ComputeNode) -> None:
    assert await is_here(node)


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


@pytest.mark.parametrize(
    ("count", "shown"), [(3, "n0, n1, n2"), (4, "n0, n1, n2, ..."), (5, "n0, n1, n2, ...")]
)
async def test_error_names_the_first_three_nodes(count: int, shown: str) -> None:
    nodes = [ComputeNode(f"n{number}", address="192.0.2.7") for number in range(count)]

    with pytest.raises(PlatformError) as caught:
        await way_in(LOOPBACK, nodes, NoFront(), commands_are_here=True)

    assert f"({shown})" in caught.value.message


async def test_error_without_a_known_node_is_about_those_of_the_cluster() -> None:
    with pytest.raises(PlatformError, match=r"\(nodes of the cluster\)"):
        await way_in(LOOPBACK, [], NoFront(), commands_are_here=False)


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


class Relay:
    """Login node whose relay is at one address; it records the request."""

    relay_address = "login:9000"

    def __init__(self) -> None:
        self.requests: list[tuple[str, int, list[str]]] = []

    async def open_relay(self, python: str, front_port: int, peers: Iterable[str]) -> str:
        self.requests.append((python, front_port, list(peers)))
        return self.relay_address


async def test_relay_leads_to_the_front_and_is_reached_by_the_first_three_nodes() -> None:
    relay = Relay()
    nodes = [
        ComputeNode("a", address="10.0.0.1", host="host-a"),
        ComputeNode("b", host="host-b"),
        ComputeNode("c"),
        ComputeNode("d"),
    ]

    found = await relayed(LOOPBACK, nodes, OpenFront("127.0.0.1:8081"), relay, "python3.12")

    assert relay.requests == [("python3.12", 8081, ["10.0.0.1", "host-b", "c"])]
    assert (found.bus, found.manager) == ("tls://login:9000", "login:9000")
    assert found.authority == "authority"


async def test_endpoint_with_tls_needs_no_relay() -> None:
    relay = Relay()

    assert await relayed(TLS, [ELSEWHERE], NoFront(), relay, "python3") == connection(TLS)
    assert relay.requests == []


async def test_second_address_of_a_name_may_be_that_of_this_machine() -> None:
    assert await is_here(ComputeNode("n1", host="localhost"))


async def test_remedy_of_the_front_is_kept() -> None:
    class ClosedFront:
        async def open(self) -> FrontEndpoint:
            raise PlatformError("no port is free", "free one")

    with pytest.raises(PlatformError, match="need the TLS front: no port is free") as caught:
        await way_in(LOOPBACK, [ELSEWHERE], ClosedFront(), commands_are_here=True)

    assert (caught.value.remedy, caught.value.permanent) == ("free one", False)


async def test_direct_connection_has_the_addresses_of_bus_and_manager() -> None:
    found = connection(LOOPBACK)

    assert (found.bus, found.manager) == ("nats://127.0.0.1:4222", "127.0.0.1:50051")
