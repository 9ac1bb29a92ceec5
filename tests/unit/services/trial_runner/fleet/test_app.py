"""Parts of the fleet that the settings choose; the whole is started by the integration tests."""

import asyncio
import socket
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.access.security import BusLogin, SecuritySettings
from svc_common.agent_users import BUS_FILE, AgentUsers
from svc_common.lifecycle import Service
from svc_common.messaging.nats_settings import ALPN_PROTOCOL
from svc_common.messaging.permissions import (
    agent_accounts,
    fleet_user,
    manager_user,
    reloader_user,
    users_block,
)
from svc_trial_runner.fleet.adapters.credentials import (
    FolderCredentials,
    NoCredentials,
    SupervisorCredentials,
)
from svc_trial_runner.fleet.adapters.front.listener import GRPC_PROTOCOL
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.front.tls_front import TlsFront
from svc_trial_runner.fleet.app import _front, _open_credentials, _open_relays, _platforms
from svc_trial_runner.fleet.ports import InstallationEndpoints, PlatformError
from svc_trial_runner.fleet.settings import Settings
from tests.support.greeters import open_greeters
from tests.support.local_platforms import ENDPOINTS
from tests.support.servers import NatsServer
from tests.support.tls_fronts import connect

pytest.importorskip("cryptography")


def settings(
    home: Path,
    *,
    credentials_fd: int | None = None,
    agent_users: Path | None = None,
    endpoints: InstallationEndpoints = ENDPOINTS,
) -> Settings:
    return Settings(
        home,
        endpoints.bus,
        "secret",
        endpoints.manager_grpc,
        credentials_fd=credentials_fd,
        agent_users=agent_users,
        front_host="127.0.0.1",
    )


async def test_front_of_a_deployment_is_reached_by_other_hosts_though_its_own_is_loopback(
    tmp_path: Path,
) -> None:
    service = Service()
    async with service.adapters:
        front = _front(service, settings(tmp_path, agent_users=tmp_path / "agents"), ENDPOINTS)

        endpoint = await front.of_platform("exp-a", "joined", "gate.example.org").open()

    assert endpoint.address.startswith("gate.example.org:")


async def test_front_of_one_machine_is_reached_by_its_own_host_only(tmp_path: Path) -> None:
    service = Service()
    async with service.adapters:
        front = _front(service, settings(tmp_path, credentials_fd=3), ENDPOINTS)

        with pytest.raises(PlatformError, match=r"listens at 127\.0\.0\.1:\d+ only"):
            await front.of_platform("exp-a", "joined", "gate.example.org").open()


def test_installation_without_credentials_of_agents_has_no_front(tmp_path: Path) -> None:
    assert isinstance(_front(Service(), settings(tmp_path), ENDPOINTS), NoFront)


async def test_front_leads_to_bus_and_manager(tmp_path: Path) -> None:
    service = Service()
    async with open_greeters() as endpoints, service.adapters:
        front = _front(service, settings(tmp_path, credentials_fd=3), endpoints)
        assert isinstance(front, TlsFront)
        endpoint = await front.open_for("pool/joined")
        words = []
        for protocol in (ALPN_PROTOCOL, GRPC_PROTOCOL):
            reader, writer = await connect(endpoint, protocol)
            words.append(await reader.read())
            writer.close()

    assert words == [b"bus", b"manager"]
    with pytest.raises(ConnectionRefusedError):
        await connect(endpoint, GRPC_PROTOCOL)


async def test_parts_of_one_machine_reach_bus_and_manager_at_their_own_addresses(
    tmp_path: Path,
) -> None:
    service = Service()
    async with service.adapters:
        assert await _open_relays(service, settings(tmp_path)) == ENDPOINTS


async def test_parts_of_a_deployment_reach_the_manager_by_a_relay(tmp_path: Path) -> None:
    service = Service()
    async with open_greeters() as endpoints:
        async with service.adapters:
            wanted = settings(tmp_path, agent_users=tmp_path / "agents", endpoints=endpoints)
            found = await _open_relays(service, wanted)
            host, _, port = found.manager_grpc.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            word = await reader.read()
            writer.close()

        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, int(port))
    assert word == b"manager"
    assert found.bus.startswith("nats://127.0.0.1:")
    assert found != endpoints


@pytest.mark.parametrize("deployed", [False, True])
async def test_only_the_fleet_of_a_deployment_refuses_to_run_trials_beside_itself(
    tmp_path: Path, *, deployed: bool
) -> None:
    wanted = settings(tmp_path, agent_users=tmp_path / "agents" if deployed else None)
    (tmp_path / "fleet").mkdir()
    platforms = _platforms(wanted, "0123abcd", NoFront(), ENDPOINTS)

    if deployed:
        with pytest.raises(PlatformError):
            await platforms.open("pool", "local", "local", {}, "")
    else:
        assert await platforms.open("pool", "local", "local", {}, "") is not None


async def test_credentials_are_those_of_the_supervisor_if_there_is_one(tmp_path: Path) -> None:
    service = Service()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    async with service.adapters:
        none = await _open_credentials(service, settings(tmp_path))
        store = await _open_credentials(service, settings(tmp_path, credentials_fd=ours.detach()))

    assert isinstance(none, NoCredentials)
    assert isinstance(store, SupervisorCredentials)
    with theirs:
        theirs.setblocking(False)
        assert theirs.recv(1) == b"", "the channel is closed with the service"


async def test_bus_of_a_deployment_reads_the_users_of_a_former_run(tmp_path: Path) -> None:
    agents = tmp_path / "agents"
    agents.mkdir()
    users = AgentUsers(agents)
    users.issue("nni-0123abcd-exp-a-1", "exp-a")
    users.save()
    known = users.agents()
    server = NatsServer(tmp_path / "bus", more="include users.conf\n")
    (tmp_path / "bus").mkdir()
    (tmp_path / "bus/agents.conf").symlink_to(agents / BUS_FILE)
    (agents / BUS_FILE).touch()
    (tmp_path / "bus/users.conf").write_text(
        users_block(
            [(manager_user(), "m"), (fleet_user(), "f"), (reloader_user(), "f")], "agents.conf"
        )
    )
    await asyncio.to_thread(server.start)
    service = Service()
    wanted = replace(
        settings(tmp_path, agent_users=agents),
        nats_url=server.url,
        security=SecuritySettings(bus=BusLogin("fleet", "f")),
    )
    try:
        async with asyncio.timeout(30), service.adapters:
            store = await _open_credentials(service, wanted)
    finally:
        await asyncio.to_thread(server.stop)

    assert isinstance(store, FolderCredentials)
    assert (agents / BUS_FILE).read_text() == agent_accounts(known)
