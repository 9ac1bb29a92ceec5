"""Relays to encrypted services, with a real bus."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from svc_common.errors import UnavailableError
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_settings import NatsSettings
from svc_trial_runner.fleet.adapters.front.relays import (
    Address,
    BusConnector,
    Connector,
    ManagerConnector,
    Relay,
    plain_greeting,
)
from tests.support.certificates import Authority
from tests.support.ports import free_port, has_ipv6
from tests.support.servers import nats_server


@asynccontextmanager
async def relayed(connector: Connector) -> AsyncIterator[Address]:
    relay = Relay(connector)
    try:
        async with asyncio.timeout(60):
            yield await relay.start()
    finally:
        await relay.aclose()


async def speaks(address: Address) -> bool:
    """Return whether a client without encryption gets an answer of the bus."""
    settings = NatsSettings(f"nats://{address.host}:{address.port}", token="t")
    connection = Connection(settings)
    await connection.open()
    try:
        await connection.flush()
    finally:
        await connection.aclose()
    return True


@pytest.mark.parametrize("first", [False, True])
async def test_plain_client_reaches_a_bus_that_demands_encryption(
    tmp_path: Path, first: bool
) -> None:
    authority = Authority(tmp_path / "ca")
    context = authority.security().transport.client_context
    more = authority.nats_tls(handshake_first=first)
    with nats_server(tmp_path / "nats", "t", more) as server:
        url = f"tls://127.0.0.1:1,tls://127.0.0.1:{server.port}"  # the first server is down
        async with relayed(BusConnector(url, context, tls_first=first)) as address:
            assert await speaks(address)
            assert await speaks(address)


async def test_bus_of_an_installation_without_encryption_is_reached(tmp_path: Path) -> None:
    with nats_server(tmp_path / "nats", "t") as server:
        async with relayed(BusConnector(server.url, None)) as address:
            assert await speaks(address)


async def test_bus_with_the_certificate_of_another_authority_gets_no_byte(tmp_path: Path) -> None:
    authority, other = Authority(tmp_path / "ca"), Authority(tmp_path / "other")
    with nats_server(tmp_path / "nats", "t", authority.nats_tls()) as server:
        connector = BusConnector(server.url, other.security().transport.client_context)
        with pytest.raises(UnavailableError, match="certificate verify failed"):
            await connector.connect()


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
async def test_address_of_ipv6_in_brackets_is_connected_to() -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello")
        writer.close()

    server = await asyncio.start_server(greet, "::1", 0)
    connector = ManagerConnector(Address("[::1]", server.sockets[0].getsockname()[1]), None)

    (reader, writer), _ = await connector.connect()

    assert await reader.read() == b"hello"
    writer.close()
    server.close()


async def test_connection_to_a_manager_is_encrypted_and_selects_grpc(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    own = authority.sign("manager")
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(own.certificate, own.key)
    served.set_alpn_protocols(["h2"])
    protocols = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        protocols.append(writer.get_extra_info("ssl_object").selected_alpn_protocol())
        writer.write(await reader.readexactly(5))
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=served)
    async with server:
        manager = Address("127.0.0.1", server.sockets[0].getsockname()[1])
        connector = ManagerConnector(manager, authority.security().transport.client_context)
        async with relayed(connector) as address:
            reader, writer = await asyncio.open_connection(address.host, address.port)
            writer.write(b"hello")
            answer = await reader.read()
            writer.close()

    assert (answer, protocols) == (b"hello", ["h2"])


async def test_client_of_a_service_that_is_away_is_closed_without_a_byte() -> None:
    async with relayed(ManagerConnector(Address("127.0.0.1", free_port()), None)) as address:
        reader, writer = await asyncio.open_connection(address.host, address.port)
        try:
            assert await reader.read() == b""
        finally:
            writer.close()


def test_greeting_asks_for_no_encryption_and_names_no_other_server() -> None:
    fields = {
        "server_id": "N", "nonce": "x", "tls_required": True, "connect_urls": ["10.0.0.2:4222"],
    }  # fmt: skip

    line = plain_greeting(b"INFO " + json.dumps(fields).encode() + b"\r\n")

    assert line == b'INFO {"server_id":"N","nonce":"x"}\r\n'


@pytest.mark.parametrize("line", [b"", b"HTTP/1.1 400\r\n", b"INFO no\r\n"])
def test_server_that_is_no_bus_is_refused(line: bytes) -> None:
    with pytest.raises(ValueError, match=r".*"):
        plain_greeting(line)


class Bus:
    """Server that greets like a bus, and counts its clients."""

    def __init__(self, greeting: bytes = b'INFO {"server_id":"N"}\r\n') -> None:
        self.greeting = greeting
        self.clients = 0
        self.ended = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Greet a client, and wait for its end."""
        self.clients += 1
        writer.write(self.greeting)
        await reader.read()
        writer.close()
        await writer.wait_closed()
        self.ended.set()


async def connect_once(connector: BusConnector) -> bytes:
    """Connect, let the server close the connection, and return the greeting."""
    (reader, writer), greeting = await connector.connect()
    writer.write_eof()
    await reader.read()
    writer.close()
    await writer.wait_closed()
    return greeting


async def test_servers_of_a_bus_are_taken_in_turns() -> None:
    buses = [Bus(), Bus()]
    servers = [await asyncio.start_server(bus.serve, "127.0.0.1", 0) for bus in buses]
    ports = [server.sockets[0].getsockname()[1] for server in servers]
    connector = BusConnector(", ".join(f"nats://127.0.0.1:{port}" for port in ports), None)

    async with asyncio.timeout(30):
        greetings = [await connect_once(connector) for _ in range(4)]
        for bus, server in zip(buses, servers, strict=True):
            server.close()
            await bus.ended.wait()

    assert greetings == [b'INFO {"server_id":"N"}\r\n'] * 4
    assert [bus.clients for bus in buses] == [2, 2]


async def test_connection_to_a_server_that_is_no_bus_is_closed_and_the_reason() -> None:
    odd = Bus(b"HTTP/1.1 400\r\n")
    server = await asyncio.start_server(odd.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    connector = BusConnector(f"nats://127.0.0.1:{free_port()},nats://127.0.0.1:{port}", None)

    with pytest.raises(UnavailableError) as caught:
        await connector.connect()
    # The error has a traceback, whose frames keep the streams: nothing else closes them.
    await asyncio.wait_for(odd.ended.wait(), 30)
    server.close()

    assert caught.value.message == (
        f"no server of the bus can be reached (127.0.0.1:{port}: the server is no bus)"
    )


async def test_manager_that_is_away_is_named() -> None:
    port = free_port()

    with pytest.raises(UnavailableError, match=f"the manager at 127.0.0.1:{port} cannot be reach"):
        await ManagerConnector(Address("127.0.0.1", port), None).connect()


async def test_connection_to_a_manager_has_no_greeting() -> None:
    manager = Bus(b"")
    server = await asyncio.start_server(manager.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    (_, writer), greeting = await ManagerConnector(Address("127.0.0.1", port), None).connect()
    writer.close()
    await asyncio.wait_for(manager.ended.wait(), 30)
    server.close()

    assert greeting == b""


@pytest.mark.parametrize(
    "name", ["tls_required", "tls_available", "tls_verify", "connect_urls", "ip", "client_ip"]
)
def test_field_of_a_direct_connection_is_not_in_the_greeting(name: str) -> None:
    line = f'INFO {{"{name}": 1, "port": 4222}}\r\n'.encode()

    assert plain_greeting(line) == b'INFO {"port":4222}\r\n'


async def test_relay_that_was_never_started_is_closed() -> None:
    relay = Relay(ManagerConnector(Address("127.0.0.1", 9), None))
    before = len(asyncio.all_tasks())

    await relay.aclose()
    await relay.aclose()

    assert len(asyncio.all_tasks()) == before
