"""Tests of the routes and limits of the TLS front's listener."""

import asyncio
import hashlib
import os
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from svc_common.access.front_addresses import came_through_front
from svc_trial_runner.fleet.adapters.front import listener as listener_module
from svc_trial_runner.fleet.adapters.front.authority import open_certificate
from svc_trial_runner.fleet.adapters.front.connection_limits import ConnectionLimits
from svc_trial_runner.fleet.adapters.front.listener import Forward, FrontListener, plain_address
from svc_trial_runner.fleet.adapters.front.tls_front import TlsFront
from tests.support.ports import free_port
from tests.support.tls_fronts import FEW, Streams, connect, tls_front

pytest.importorskip("cryptography")

LARGE = bytes(range(256)) * 20_000
OTHER_USER = 65_534


@asynccontextmanager
async def echo_service() -> AsyncIterator[tuple[int, list[str]]]:
    """Yield port and clients' addresses of a service that sends all bytes back."""
    peers: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peers.append(writer.get_extra_info("peername")[0])
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1], peers


async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str) -> None:
    """Route that sends the client's address."""
    del reader
    writer.write(address.encode())
    await writer.drain()


@asynccontextmanager
async def fronts(folder: Path, port: int = 9) -> AsyncIterator[TlsFront]:
    routes = {"nats": Forward("127.0.0.1", port).serve, "greet": greet}
    async with tls_front(folder, routes) as front:
        await front.open_for("pool/joined")
        yield front


async def ended(streams: Streams) -> bytes:
    reader, writer = streams
    try:
        return await reader.read()
    except OSError:
        return b""
    finally:
        writer.close()


async def test_protocol_selects_the_route(tmp_path: Path) -> None:
    async with fronts(tmp_path) as front:
        assert front.endpoint is not None

        assert await ended(await connect(front.endpoint, "greet")) == b"127.0.0.1"


@pytest.mark.parametrize("protocols", [(), ("http/1.1",)])
async def test_other_protocols_are_closed_without_a_byte(
    tmp_path: Path, protocols: tuple[str, ...]
) -> None:
    async with fronts(tmp_path) as front:
        assert front.endpoint is not None
        try:
            received = await ended(await connect(front.endpoint, *protocols))
        except OSError:
            received = b""

        assert received == b""


async def test_bytes_pass_both_ways_with_back_pressure(tmp_path: Path) -> None:
    async with echo_service() as (port, _), fronts(tmp_path, port) as front:
        assert front.endpoint is not None
        reader, writer = await connect(front.endpoint, "nats")

        async def send() -> None:
            writer.write(LARGE)
            await writer.drain()

        sending = asyncio.create_task(send())
        received = await reader.readexactly(len(LARGE))
        await sending
        writer.close()

        assert hashlib.sha256(received).digest() == hashlib.sha256(LARGE).digest()


async def test_service_knows_connections_of_the_front_by_their_address(tmp_path: Path) -> None:
    async with echo_service() as (port, peers), fronts(tmp_path, port) as front:
        assert front.endpoint is not None
        reader, writer = await connect(front.endpoint, "nats")
        writer.write(b"x")
        await reader.readexactly(1)
        writer.close()

        assert [came_through_front(peer) for peer in peers] == [True]


async def test_service_that_is_away_ends_the_connection(tmp_path: Path) -> None:
    async with fronts(tmp_path, free_port()) as front:
        assert front.endpoint is not None

        assert await ended(await connect(front.endpoint, "nats")) == b""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a socket to another user")
@pytest.mark.parametrize(
    ("owner", "received"), [(None, b"z"), (OTHER_USER, b"z"), (OTHER_USER + 1, b"")]
)
async def test_service_of_another_user_than_the_owner_gets_no_connection(
    tmp_path: Path, owner: int | None, received: bytes
) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(1))
        writer.close()

    listening = socket.create_server(("127.0.0.1", 0))
    os.fchown(listening.fileno(), OTHER_USER, -1)
    routes = {"nats": Forward("127.0.0.1", listening.getsockname()[1], owner).serve}
    async with (
        await asyncio.start_server(serve, sock=listening),
        tls_front(tmp_path, routes) as front,
    ):
        reader, writer = await connect(await front.open_for("pool/joined"), "nats")
        writer.write(b"z")

        assert await ended((reader, writer)) == received


async def test_client_that_never_shakes_hands_is_closed(tmp_path: Path) -> None:
    certificate = open_certificate(tmp_path / "front", datetime.now(UTC))
    listening = socket.create_server(("127.0.0.1", free_port()))
    context = certificate.server_context(["h2"])
    listener = FrontListener(listening, context, {}, FEW, handshake_s=0.05)
    try:
        reader, writer = await asyncio.open_connection(*listening.getsockname())
        writer.write(b"\x16")  # a handshake that goes on for ever

        assert await ended((reader, writer)) == b""
    finally:
        await listener.aclose()


async def test_clients_beyond_the_limit_are_closed_and_the_others_served(tmp_path: Path) -> None:
    async with echo_service() as (port, _):
        routes = {"nats": Forward("127.0.0.1", port).serve}
        async with tls_front(tmp_path, routes, ConnectionLimits(1, 1, 1, 1)) as front:
            endpoint = await front.open_for("pool/joined")
            reader, writer = await connect(endpoint, "nats")
            with pytest.raises(OSError):  # noqa: PT011 - a reset or an end, as the system likes
                await connect(endpoint, "nats")
            writer.write(b"y")

            assert await reader.readexactly(1) == b"y"

            writer.close()


async def test_client_of_another_authority_is_not_connected(tmp_path: Path) -> None:
    async with fronts(tmp_path / "one") as front, fronts(tmp_path / "two") as other:
        assert front.endpoint is not None
        assert other.endpoint is not None

        with pytest.raises(ssl.SSLCertVerificationError):
            await connect(front.endpoint, "nats", authority=other.endpoint.authority)


def test_addresses_of_dual_stack_sockets_are_plain() -> None:
    assert plain_address("::ffff:10.0.0.7") == "10.0.0.7"
    assert plain_address("fe80::1%eth0") == "fe80::1"


async def test_connection_that_is_idle_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "IDLE_S", 0.0)
    async with echo_service() as (port, _), fronts(tmp_path, port) as front:
        assert front.endpoint is not None

        assert await ended(await connect(front.endpoint, "nats")) == b""


async def test_each_byte_either_way_postpones_the_end_of_an_idle_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener_module, "IDLE_S", 1e6)  # no other timer is so late
    loop = asyncio.get_running_loop()
    late: list[float] = []
    call_at = loop.call_at

    def note(when_s: float, *args: Any, **options: Any) -> asyncio.TimerHandle:
        if when_s - loop.time() > 1e5:
            late.append(when_s)
        return call_at(when_s, *args, **options)

    monkeypatch.setattr(loop, "call_at", note)
    async with echo_service() as (port, _), fronts(tmp_path, port) as front:
        assert front.endpoint is not None
        reader, writer = await connect(front.endpoint, "nats")
        begun: list[int] = []
        for _ in range(2):
            writer.write(b"x")
            await reader.readexactly(1)
            begun.append(len(late))
        writer.close()

    # One timer of the connection, and one for each byte that came in or went out.
    assert begun == [3, 5]
    assert late == sorted(late)
