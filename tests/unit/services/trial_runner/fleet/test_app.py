"""Parts of the fleet that the settings choose; the whole is started by the integration tests."""

from pathlib import Path

import pytest

from svc_common.lifecycle import Service
from svc_common.messaging.nats_settings import ALPN_PROTOCOL
from svc_trial_runner.fleet.adapters.front.listener import GRPC_PROTOCOL
from svc_trial_runner.fleet.adapters.front.no_front import NoFront
from svc_trial_runner.fleet.adapters.front.tls_front import TlsFront
from svc_trial_runner.fleet.app import _front
from svc_trial_runner.fleet.ports import PlatformError
from svc_trial_runner.fleet.settings import Settings
from tests.support.greeters import open_greeters
from tests.support.local_platforms import ENDPOINTS
from tests.support.tls_fronts import connect

pytest.importorskip("cryptography")


def settings(
    home: Path, *, credentials_fd: int | None = None, agent_users: Path | None = None
) -> Settings:
    return Settings(
        home,
        ENDPOINTS.bus,
        "secret",
        ENDPOINTS.manager_grpc,
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
