"""Ways to bus and manager."""

import socket

from svc_trial_runner.agent_settings import ConnectionKind
from svc_trial_runner.fleet.adapters.slurm.listings import ComputeNode
from svc_trial_runner.fleet.adapters.slurm.reachability import connection, is_here, unreachable
from svc_trial_runner.fleet.ports import InstallationEndpoints

LOOPBACK = InstallationEndpoints("nats://127.0.0.1:4222", "127.0.0.1:50051")
TLS = InstallationEndpoints("tls://head:8081", "head:8081")
HERE = ComputeNode("n1", address="127.0.0.1", host=socket.gethostname())
# An address of documentation: no machine has it.
ELSEWHERE = ComputeNode("n2", address="192.0.2.7", host="n2")


async def test_node_with_an_address_of_this_machine_is_here() -> None:
    assert await is_here(HERE)


async def test_node_with_another_address_is_not_here() -> None:
    assert not await is_here(ELSEWHERE)


async def test_nodes_here_reach_loopback() -> None:
    assert await unreachable(LOOPBACK, [HERE], commands_are_here=True) == []


async def test_nodes_elsewhere_do_not_reach_loopback() -> None:
    (problem,) = await unreachable(LOOPBACK, [HERE, ELSEWHERE], commands_are_here=True)

    assert problem.field == "platform"
    assert problem.value.endswith("n2")


async def test_cluster_behind_a_login_node_does_not_reach_loopback() -> None:
    assert len(await unreachable(LOOPBACK, [HERE], commands_are_here=False)) == 1


async def test_nodes_elsewhere_reach_an_endpoint_with_tls() -> None:
    assert await unreachable(TLS, [ELSEWHERE], commands_are_here=False) == []


def test_connection_is_that_of_the_endpoints() -> None:
    assert connection(LOOPBACK).kind is ConnectionKind.DIRECT
    assert connection(TLS).kind is ConnectionKind.TLS
