"""Encryption of bus, gRPC and HTTP, with certificates made for the test, on real sockets."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc.aio
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from nni_wire.access import AccessEntry, dump_entries
from svc_common.access.audit import AuditTrail
from svc_common.access.authentication import Authenticator
from svc_common.access.keyring import Keyring
from svc_common.access.security import ON_LOOPBACK, Guard, SecuritySettings
from svc_common.access.transport import PLAIN, Transport
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.messaging.nats_bus import NatsBus
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_manager.web.listeners.server import WebServer
from tests.support.certificates import Authority
from tests.support.servers import nats_server
from tests.unit.services.manager.web.conftest import API, EXPERIMENT, dependencies, experiment
from tests.unit.services.manager.web.in_memory import InMemoryManager

PLAIN_TEXT = r"NNI_TLS_CERT_FILE.*NNI_INSECURE=1"
TOKEN = "a token of enough characters"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path / "certificates")


def guard(security: SecuritySettings, access_file: Path | None = None) -> Guard:
    return Guard(
        Authenticator(Keyring(TOKEN, access_file), AuditTrail()), security.transport, len(TOKEN)
    )


# -- the bus ----------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [False, True], ids=["after INFO", "from the first byte"])
async def test_bus_is_reached_over_tls(tmp_path: Path, authority: Authority, first: bool) -> None:
    security = authority.security()
    security = replace(security, bus=replace(security.bus, tls_first=first))
    with nats_server(tmp_path / "bus", TOKEN, authority.nats_tls(handshake_first=first)) as server:
        settings = NatsSettings.of(server.url, security, token=TOKEN, name="test")
        async with asyncio.timeout(60), NatsBus(settings) as bus:
            await bus.tasks.publish("p", b"x" * 3_000_000, message_id="1")
            feed = await bus.tasks.pull("p")
            feed.grant(1)
            task = await anext(aiter(feed))

            server.kill()
            await bus.wait_connected(connected=False)
            server.start()
            await bus.wait_connected()

    assert len(task.payload) == 3_000_000


async def test_certificate_of_another_authority_is_refused(
    tmp_path: Path, authority: Authority
) -> None:
    other = Authority(tmp_path / "other").security()
    with nats_server(tmp_path / "bus", TOKEN, authority.nats_tls()) as server:
        settings = NatsSettings.of(server.url, other, token=TOKEN, name="test")
        with pytest.raises(FailedPreconditionError, match=r"cannot be trusted.*NNI_TLS_CA_FILE"):
            async with asyncio.timeout(60), NatsBus(settings):
                pass


async def test_certificate_for_another_name_is_refused(
    tmp_path: Path, authority: Authority
) -> None:
    own = authority.sign("elsewhere", "bus.example.org")
    block = f'tls {{ cert_file: "{own.certificate}", key_file: "{own.key}" }}\n'
    with nats_server(tmp_path / "bus", TOKEN, block) as server:
        settings = NatsSettings.of(server.url, authority.security(), token=TOKEN, name="test")
        with pytest.raises(FailedPreconditionError, match="cannot be trusted"):
            async with asyncio.timeout(60), NatsBus(settings):
                pass


async def test_no_secret_goes_to_a_bus_that_does_not_encrypt(
    tmp_path: Path, authority: Authority
) -> None:
    heard = bytearray()

    async def pretend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"max_payload": 1024}\r\n')
        heard.extend(await reader.read(4096))
        writer.close()

    server = await asyncio.start_server(pretend, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    settings = NatsSettings.of(
        f"nats://127.0.0.1:{port}", authority.security(), token=TOKEN, name="test"
    )
    with pytest.raises(FailedPreconditionError, match="does not offer encryption"):
        async with asyncio.timeout(60), NatsBus(settings):
            pass
    server.close()

    assert TOKEN.encode() not in heard


async def test_bus_that_demands_encryption_says_what_to_set(
    tmp_path: Path, authority: Authority
) -> None:
    with nats_server(tmp_path / "bus", TOKEN, authority.nats_tls()) as server:
        settings = NatsSettings.of(server.url, ON_LOOPBACK, token=TOKEN, name="test")
        with pytest.raises(FailedPreconditionError, match="demands encryption; set NNI_TLS_CA_FIL"):
            async with asyncio.timeout(60), NatsBus(settings):
                pass


# -- gRPC -------------------------------------------------------------------------------------


@asynccontextmanager
async def grpc_server(security: SecuritySettings, host: str = "127.0.0.1") -> AsyncIterator[int]:
    server = GrpcServer([], guard(security))
    port = await server.start(host)
    yield port
    await server.stop(0.1)


async def health(address: str, transport: Transport) -> int:
    async with open_channel(address, transport) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its types name no method
        answer = await stub.Check(health_pb2.HealthCheckRequest(), timeout=60)
        return int(answer.status)


async def test_grpc_is_encrypted_and_may_listen_everywhere(authority: Authority) -> None:
    security = authority.security()
    other = authority.sign("other").certificate
    async with grpc_server(security, "0.0.0.0") as port:
        status = await health(f"localhost:{port}", security.transport)
        with pytest.raises(grpc.aio.AioRpcError):
            await health(f"127.0.0.1:{port}", PLAIN)
        with pytest.raises(grpc.aio.AioRpcError):
            await health(f"127.0.0.1:{port}", replace(security.transport, ca=other))

    assert status == health_pb2.HealthCheckResponse.SERVING


async def test_grpc_with_an_authority_of_clients_demands_a_certificate(
    authority: Authority, tmp_path: Path
) -> None:
    security = authority.security(client_ca=True)
    stranger = Authority(tmp_path / "other").sign("stranger")
    async with grpc_server(security) as port:
        address = f"127.0.0.1:{port}"
        status = await health(address, security.transport)
        with pytest.raises(grpc.aio.AioRpcError):
            await health(address, Transport(ca=authority.ca))
        with pytest.raises(grpc.aio.AioRpcError):
            await health(
                address,
                Transport(certificate=stranger.certificate, key=stranger.key, ca=authority.ca),
            )

    assert status == health_pb2.HealthCheckResponse.SERVING


# -- HTTP -------------------------------------------------------------------------------------


@asynccontextmanager
async def web_server(
    security: SecuritySettings, folder: Path, host: str = "127.0.0.1", access: Path | None = None
) -> AsyncIterator[str]:
    manager = InMemoryManager()
    manager.put(experiment(folder))
    server = WebServer(TOKEN, host, guard=guard(security, access))
    port = await server.serve(dependencies(manager))
    yield f"{server.scheme}://127.0.0.1:{port}"
    await server.aclose()


def browser(authority: Authority, chain: tuple[str, str] | None = None) -> httpx.AsyncClient:
    context = ssl.create_default_context(cafile=str(authority.ca))
    if chain is not None:
        context.load_cert_chain(*chain)
    return httpx.AsyncClient(verify=context, trust_env=False, timeout=60)


async def test_http_is_encrypted_and_its_cookie_stays_so(
    authority: Authority, tmp_path: Path
) -> None:
    async with (
        web_server(authority.security(), tmp_path, "0.0.0.0") as base,
        browser(authority) as client,
    ):
        refused = await client.get(f"{base}{API}/version")
        entered = await client.get(f"{base}/", params={"token": TOKEN})
        session = await client.get(f"{base}{API}/session")

    cookie = entered.headers["set-cookie"].lower()
    assert base.startswith("https://")
    assert refused.status_code == 401
    assert entered.status_code == 303
    assert all(word in cookie for word in ("httponly", "secure", "samesite=strict"))
    assert session.json() == {"canChange": True}


async def test_plain_http_gets_nothing_from_an_encrypted_listener(
    authority: Authority, tmp_path: Path
) -> None:
    async with (
        web_server(authority.security(), tmp_path) as base,
        httpx.AsyncClient(trust_env=False, timeout=60) as client,
    ):
        with pytest.raises(httpx.TransportError):
            await client.get(base.replace("https", "http"))


async def test_old_tls_is_refused(authority: Authority, tmp_path: Path) -> None:
    context = ssl.create_default_context(cafile=str(authority.ca))
    context.minimum_version = ssl.TLSVersion.MINIMUM_SUPPORTED
    with pytest.warns(DeprecationWarning, match="TLSv1_1"):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    async with web_server(authority.security(), tmp_path) as base:
        port = int(base.rpartition(":")[2])
        with pytest.raises(ssl.SSLError):
            await asyncio.open_connection("127.0.0.1", port, ssl=context)


@pytest.mark.parametrize(("name", "status"), [("alice", 200), ("vera", 403), ("mallory", 401)])
async def test_certificate_of_a_client_has_the_role_of_its_subject(
    authority: Authority, tmp_path: Path, name: str, status: int
) -> None:
    access = tmp_path / "access.json"
    access.write_text(
        dump_entries(
            [
                AccessEntry("alice", "user", common_name="alice"),
                AccessEntry("vera", "viewer", common_name="vera"),
            ]
        )
    )
    access.chmod(0o600)
    own = authority.sign(name)
    security = authority.security(client_ca=True)
    async with (
        web_server(security, tmp_path, "0.0.0.0", access) as base,
        browser(authority, (str(own.certificate), str(own.key))) as client,
    ):
        answer = await client.delete(f"{base}{API}/experiments/{EXPERIMENT}/tensorboard-tasks")

    assert answer.status_code == status


# -- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "box.example.org", ""])
async def test_nothing_listens_off_loopback_in_plain_text(host: str) -> None:
    with pytest.raises(FailedPreconditionError, match=PLAIN_TEXT):
        await GrpcServer([], guard(ON_LOOPBACK)).start(host)
    with pytest.raises(FailedPreconditionError, match=PLAIN_TEXT):
        WebServer(TOKEN, host, guard=guard(ON_LOOPBACK))


async def test_plain_text_that_is_wanted_is_served_with_a_loud_warning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wanted = SecuritySettings(Transport(insecure=True))
    async with grpc_server(wanted, "0.0.0.0"):
        pass

    out = capsys.readouterr()
    assert "INSECURE" in out.out + out.err


@pytest.mark.parametrize(
    "url",
    [
        "nats://bus.example.org:4222",
        "nats://127.0.0.1:1,nats://bus:4222",
        "redis://:x@10.0.0.1/0",
        "http://s3.example.org",
    ],
)
def test_other_machines_are_not_called_in_plain_text(url: str) -> None:
    with pytest.raises(FailedPreconditionError, match="another machine"):
        PLAIN.check_url("NNI_THING", url)


def test_secret_of_an_address_is_not_in_the_complaint() -> None:
    with pytest.raises(FailedPreconditionError) as caught:
        PLAIN.check_url("NNI_REDIS_URL", "redis://:hunter2@10.0.0.1/0")

    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    ["tls://bus:4222", "rediss://box/0", "https://s3.example.org", "nats://localhost:4222", None],
)
def test_encrypted_addresses_and_loopback_may_be_called(url: str | None) -> None:
    PLAIN.check_url("NNI_THING", url)


def test_short_token_is_refused_where_other_machines_can_try_it(authority: Authority) -> None:
    weak = Guard(Authenticator.of_token("short"), authority.security().transport, len("short"))

    with pytest.raises(InvalidArgumentError, match="NNI_TOKEN must have at least 16"):
        weak.check_listener("NNI_MANAGER_GRPC", "0.0.0.0")


def test_files_that_do_not_fit_are_named(authority: Authority, tmp_path: Path) -> None:
    one, other = authority.sign("one"), authority.sign("two")
    (tmp_path / "text").write_text("no certificate")

    for transport in (
        Transport(certificate=one.certificate, key=other.key),
        Transport(certificate=tmp_path / "text", key=one.key),
        Transport(certificate=tmp_path / "missing", key=one.key),
    ):
        with pytest.raises(InvalidArgumentError, match="NNI_TLS_CERT_FILE"):
            transport.grpc_server_credentials()
    with pytest.raises(InvalidArgumentError, match="NNI_TLS_CA_FILE"):
        Transport(ca=tmp_path / "text").client_context()
