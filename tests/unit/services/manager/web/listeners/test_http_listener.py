"""HTTP listeners on real loopback sockets: responses, time limits, closing."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from svc_manager.web.listeners import http_listener
from svc_manager.web.listeners.connection_limits import ConnectionLimits, ConnectionQuota
from svc_manager.web.listeners.http_listener import HEAD_LIMIT_BYTES, HttpListener
from svc_manager.web.security import CERTIFICATE_NAME
from tests.support.certificates import Authority
from tests.support.manual_timers import ManualTimers

LONG_S = 60.0
HEAD_TIMEOUT_S = 12.5
"""A limit that only `ManualTimers` lets pass: real time would race with the request."""
REQUEST = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
Endpoint = Callable[[Request], Awaitable[Response]]


def application(endpoint: Endpoint) -> ASGIApp:
    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        response = await endpoint(Request(scope, receive))
        await response(scope, receive, send)

    return app


async def hello(_request: Request) -> Response:
    return PlainTextResponse("hello")


@asynccontextmanager
async def running(
    endpoint: Endpoint,
    stopped: asyncio.Event | None = None,
    head_timeout_s: float = LONG_S,
    limits: ConnectionLimits | None = None,
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[HttpListener]:
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    bound.setblocking(False)
    listener = await HttpListener.start(
        application(endpoint),
        bound,
        stopped or asyncio.Event(),
        tls,
        head_timeout_s=head_timeout_s,
        limits=limits,
    )
    try:
        yield listener
    finally:
        listener.close()
        await listener.drain(0)


async def connect(
    listener: HttpListener, data: bytes
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(data)
    return reader, writer


async def until_closed(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(20):
        try:
            return await reader.read()
        except ConnectionResetError:
            return b""


async def test_application_serves_requests_of_one_connection() -> None:
    async with running(hello) as listener:
        reader, writer = await connect(listener, REQUEST + REQUEST)
        async with asyncio.timeout(20):
            received = b""
            while received.count(b"hello") < 2:
                received += await reader.read(1000)
        writer.close()

    assert received.count(b"HTTP/1.1 200 OK") == 2


async def test_plain_connection_has_no_certificate_name() -> None:
    async def name(request: Request) -> Response:
        return PlainTextResponse(repr(request.scope["state"][CERTIFICATE_NAME]))

    async with running(name) as listener:
        reader, writer = await connect(
            listener, REQUEST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
        )
        answer = await until_closed(reader)
        writer.close()

    assert answer.endswith(b"''")


async def test_connections_of_one_listener_have_no_limit_but_the_quota(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_listener, "CONNECTIONS_LIMIT", 2)
    limits = ConnectionLimits(ConnectionQuota.of_descriptors(1_024))
    async with running(hello, limits=limits) as listener:
        idle = [await connect(listener, b"") for _ in range(4)]
        reader, writer = await connect(listener, REQUEST)
        async with asyncio.timeout(20):
            status = await reader.readline()
        for _, other in (*idle, (reader, writer)):
            other.close()

    assert status == b"HTTP/1.1 200 OK\r\n"


async def test_connections_without_a_handshake_give_their_places_to_callers(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    own = authority.sign("service", "127.0.0.1")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(own.certificate, own.key)
    limits = ConnectionLimits(
        ConnectionQuota(connections=8, crowded=6, anonymous=4, anonymous_per_address=2)
    )
    async with running(hello, limits=limits, tls=tls) as listener:
        silent = [await connect(listener, b"") for _ in range(9)]
        first = await until_closed(silent[0][0])
        reader, writer = await asyncio.open_connection(
            "127.0.0.1",
            listener.port,
            ssl=ssl.create_default_context(cafile=authority.ca),
        )
        writer.write(REQUEST)
        async with asyncio.timeout(20):
            status = await reader.readline()
        for _, other in (*silent, (reader, writer)):
            other.close()

    assert first == b""
    assert status == b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n"])
async def test_connection_without_a_complete_head_is_closed_after_the_time_limit(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers = ManualTimers(monkeypatch, HEAD_TIMEOUT_S)
    async with running(hello, head_timeout_s=HEAD_TIMEOUT_S) as listener:
        reader, writer = await connect(listener, sent)
        async with asyncio.timeout(20):
            await timers.wait_pending()
        timers.fire()
        received = await until_closed(reader)
        writer.close()

    assert b"hello" not in received


async def test_time_limit_of_the_head_does_not_limit_the_response(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    timers = ManualTimers(monkeypatch, HEAD_TIMEOUT_S)
    began, timer_passed = asyncio.Event(), asyncio.Event()

    async def slow(_request: Request) -> Response:
        began.set()
        await timer_passed.wait()
        return PlainTextResponse("late")

    async with running(slow, head_timeout_s=HEAD_TIMEOUT_S) as listener:
        reader, writer = await connect(listener, REQUEST)
        async with asyncio.timeout(20):
            await began.wait()
            idle, idle_writer = await connect(listener, b"")
            await timers.wait_pending()
        timers.fire()
        await until_closed(idle)  # the same limit has ended this connection
        timer_passed.set()
        async with asyncio.timeout(20):
            received = await reader.readuntil(b"late")
        writer.close()
        idle_writer.close()

    assert received.startswith(b"HTTP/1.1 200 OK")


async def test_incomplete_head_over_the_size_limit_is_refused() -> None:
    head = b"GET / HTTP/1.1\r\nHost: x\r\nX-Long: " + b"a" * (HEAD_LIMIT_BYTES + 1)

    async with running(hello) as listener:
        reader, writer = await connect(listener, head)
        received = await until_closed(reader)
        writer.close()

    assert received.startswith(b"HTTP/1.1 400 ")


async def test_close_frees_the_port_and_ends_streams_after_their_last_chunk() -> None:
    stopped = asyncio.Event()

    async def stream(_request: Request) -> Response:
        async def chunks() -> AsyncIterator[bytes]:
            yield b"first"
            await stopped.wait()
            yield b"last"

        return StreamingResponse(chunks())

    async with running(stream, stopped) as listener:
        port = listener.port
        reader, writer = await connect(listener, REQUEST)
        async with asyncio.timeout(20):
            await reader.readuntil(b"first")
        assert listener.busy
        listener.close()
        with socket.socket() as probe:
            refused = probe.connect_ex(("127.0.0.1", port))
        received = await until_closed(reader)
        writer.close()
        await listener.drain(LONG_S)

    assert refused != 0
    assert b"last" in received
    assert not listener.busy


async def test_drain_cancels_requests_that_outlast_the_grace_period() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def endless(_request: Request) -> Response:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return PlainTextResponse("never")

    async with running(endless) as listener:
        _, writer = await connect(listener, REQUEST)
        async with asyncio.timeout(20):
            await started.wait()
        listener.close()
        await listener.drain(0)
        writer.close()

    assert cancelled.is_set()
