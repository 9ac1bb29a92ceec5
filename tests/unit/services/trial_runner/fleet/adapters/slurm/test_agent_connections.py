"""Ways of agents to bus and manager."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from svc_trial_runner.agent_settings import ConnectionKind
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.slurm.agent_connections import AgentConnections
from svc_trial_runner.fleet.adapters.slurm.agent_files import AgentFiles
from svc_trial_runner.fleet.adapters.slurm.commands import SlurmCommands
from svc_trial_runner.fleet.adapters.slurm.options import parse_options
from svc_trial_runner.fleet.domain.agents import PlatformSection
from svc_trial_runner.fleet.ports import (
    AdapterContext,
    Front,
    FrontEndpoint,
    InstallationEndpoints,
    PlatformError,
)
from tests.support.scripted_slurm import ScriptedSlurm
from tests.support.sleeping_agents import SleepingAgents

FRONT = "10.0.0.7:8081"
RELAY = "192.168.1.2:40000"


class OpenFront:
    """Front that is open."""

    async def open(self) -> FrontEndpoint:
        return FrontEndpoint(FRONT, "authority")


class InMemoryRelay:
    """Relay that remembers how it was opened; `refusal` is raised instead."""

    def __init__(self) -> None:
        self.relay_address = ""
        self.next_address = RELAY
        self.opened: list[tuple[int, list[str]]] = []
        self.refusal: PlatformError | None = None

    async def open_relay(self, python: str, front_port: int, peers: Iterable[str]) -> str:
        assert python
        if self.refusal is not None:
            raise self.refusal
        self.opened.append((front_port, list(peers)))
        self.relay_address = self.next_address
        return self.relay_address


def connections(
    folder: Path,
    relay: InMemoryRelay | None,
    *,
    front: Front | None = None,
    front_host: str = "",
    bus: str = "nats://127.0.0.1:4222",
) -> AgentConnections:
    """Return the connections of a pool whose Slurm has one node, on this machine."""
    options = {"home": str(folder / "nni")}
    context = AdapterContext(
        "0123abcd",
        "pool",
        PlatformSection("slurm", options),
        InstallationEndpoints(bus, "127.0.0.1:50051"),
        SleepingAgents(folder),
        folder,
        front or OpenFront(),
        front_host,
    )
    slurm = ScriptedSlurm(is_here=relay is None)
    parsed = parse_options(options)
    files = AgentFiles(slurm, parsed, context.bundles)
    return AgentConnections(context, parsed, SlurmCommands(slurm, parsed), files, relay)


async def test_agents_of_a_cluster_here_reach_loopback(tmp_path: Path) -> None:
    found = await connections(tmp_path, None).settings()

    assert (found.kind, found.manager) == (ConnectionKind.DIRECT, "127.0.0.1:50051")


async def test_agents_behind_a_login_node_use_its_relay(tmp_path: Path) -> None:
    relay = InMemoryRelay()

    found = await connections(tmp_path, relay).settings()

    assert (found.kind, found.bus, found.manager) == (ConnectionKind.TLS, f"tls://{RELAY}", RELAY)
    assert found.authority == "authority"
    assert relay.opened == [(8081, ["127.0.0.1"])]


async def test_nodes_that_reach_this_machine_need_no_relay(tmp_path: Path) -> None:
    relay = InMemoryRelay()

    found = await connections(tmp_path, relay, front_host="10.0.0.7").settings()

    assert (found.manager, relay.opened) == (FRONT, [])


async def test_services_of_a_deployment_need_no_relay(tmp_path: Path) -> None:
    relay = InMemoryRelay()

    found = await connections(tmp_path, relay, bus="tls://bus:4222").settings()

    assert (found.bus, relay.opened) == ("tls://bus:4222", [])


async def test_way_is_opened_once(tmp_path: Path) -> None:
    relay = InMemoryRelay()
    ways = connections(tmp_path, relay)

    assert await ways.settings() == await ways.settings()

    assert len(relay.opened) == 1


async def test_relay_at_another_address_after_a_cut_is_that_of_new_agents(tmp_path: Path) -> None:
    relay = InMemoryRelay()
    ways = connections(tmp_path, relay)
    await ways.settings()
    relay.relay_address = relay.next_address = "192.168.1.2:40001"

    assert (await ways.settings()).manager == "192.168.1.2:40001"


async def test_relay_is_opened_for_agents_of_an_earlier_fleet(tmp_path: Path) -> None:
    relay = InMemoryRelay()
    ways = connections(tmp_path, relay)

    await ways.reopen_relay()
    await ways.reopen_relay()

    assert len(relay.opened) == 1


async def test_relay_that_is_refused_does_not_hide_the_agents(tmp_path: Path) -> None:
    relay = InMemoryRelay()
    relay.refusal = PlatformError("no way")
    ways = connections(tmp_path, relay)

    await ways.reopen_relay()

    assert relay.opened == []
    with pytest.raises(PlatformError, match="no way"):
        await ways.settings()


async def test_front_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PlatformError):
        await connections(tmp_path, InMemoryRelay(), front=NoFront()).settings()


@pytest.mark.parametrize("relay", [None, InMemoryRelay()])
async def test_relay_is_not_opened_again_for_agents_that_have_one_or_need_none(
    tmp_path: Path, relay: InMemoryRelay | None
) -> None:
    ways = connections(tmp_path, relay)
    known = await ways.settings()

    await ways.reopen_relay()

    assert await ways.settings() == known
    assert relay is None or len(relay.opened) == 1
