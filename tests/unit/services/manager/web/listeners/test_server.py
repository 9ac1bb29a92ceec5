"""The manager's listeners: addresses, prefixes, and the holder of a port."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator

import httpx
import pytest

from svc_common.access.authentication import Authenticator
from svc_common.access.security import Guard
from svc_common.access.transport import Transport
from svc_common.errors import InvalidArgumentError
from svc_manager.ports import PortTakenError
from svc_manager.web.listeners.connection_limits import ConnectionQuota
from svc_manager.web.listeners.server import WebServer, program_on_port
from tests.support.ports import has_ipv6
from tests.unit.services.manager.web.conftest import EXPERIMENT, TOKEN, dependencies
from tests.unit.services.manager.web.in_memory import InMemoryManager

INSECURE = Guard(Authenticator.of_token(TOKEN), Transport(insecure=True), len(TOKEN))


@pytest.fixture
async def server(manager: InMemoryManager) -> AsyncIterator[WebServer]:
    made = WebServer(TOKEN)
    await made.serve(dependencies(manager))
    yield made
    await made.aclose()


def test_listening_program_is_named_with_its_process() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()

        found = program_on_port(holder.getsockname()[1])

    assert f"(pid {os.getpid()})" in found


def test_port_without_a_listener_has_no_program() -> None:
    with socket.socket() as bound:  # bound but not listening: no other program can take the port
        bound.bind(("127.0.0.1", 0))

        assert program_on_port(bound.getsockname()[1]) == ""


def test_loopback_listener_has_one_address() -> None:
    server = WebServer(TOKEN)

    assert server.urls(8080, "") == ["http://127.0.0.1:8080"]
    assert server.urls(8080, "a/b") == ["http://127.0.0.1:8080/a/b/"]


def test_listener_off_loopback_has_its_host_as_second_address() -> None:
    server = WebServer(TOKEN, "10.1.2.3", guard=INSECURE)

    assert server.urls(8080, "") == ["http://127.0.0.1:8080", "http://10.1.2.3:8080"]


def test_address_of_ipv6_stands_in_brackets_in_urls() -> None:
    loopback, everywhere = WebServer(TOKEN, "[::1]"), WebServer(TOKEN, "[::]", guard=INSECURE)

    assert loopback.urls(8080, "a") == ["http://[::1]:8080/a/"]
    assert everywhere.urls(8080, "") == ["http://127.0.0.1:8080", "http://[::]:8080"]


@pytest.mark.skipif(not has_ipv6(), reason="this machine has no IPv6")
@pytest.mark.parametrize(
    ("host", "names"), [("[::1]", ["[::1]"]), ("[::]", ["[::1]", "127.0.0.1"])]
)
async def test_server_listens_at_an_address_of_ipv6(
    manager: InMemoryManager, host: str, names: list[str]
) -> None:
    server = WebServer(TOKEN, host, guard=INSECURE)
    port = await server.serve(dependencies(manager))

    async with httpx.AsyncClient(
        timeout=60, headers={"Authorization": f"Bearer {TOKEN}"}
    ) as client:
        found = [await client.get(f"http://{name}:{port}/api/v1/nni/version") for name in names]

    assert [one.status_code for one in found] == [200] * len(names)
    await server.aclose()


@pytest.mark.parametrize("prefix", ["/a", "a/", "a//b", "..", "a b", "a?b", "\u00e4"])
async def test_prefix_that_is_not_a_path_is_refused(server: WebServer, prefix: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        await server.open_listener(0, EXPERIMENT, prefix)

    assert caught.value.field == "url_prefix"


async def test_port_of_the_base_listener_is_refused_with_its_holder(
    manager: InMemoryManager,
) -> None:
    server = WebServer(TOKEN)
    port = await server.serve(dependencies(manager))

    with pytest.raises(PortTakenError, match="the manager itself"):
        await server.open_listener(port, EXPERIMENT, "")
    await server.aclose()


async def test_close_may_be_repeated_and_frees_the_port(manager: InMemoryManager) -> None:
    server = WebServer(TOKEN)
    port = await server.serve(dependencies(manager))

    await server.close_listener("unknown")
    await server.aclose()
    await server.aclose()

    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", port)) != 0


SMALL = ConnectionQuota(connections=12, crowded=9, anonymous=4, anonymous_per_address=3)
EVENTS = f"/api/v1/nni/experiments/{EXPERIMENT}/events"


async def open_stream(port: int, token: str = "") -> tuple[bytes, asyncio.StreamWriter]:
    """Request the event stream; return the status line, and the connection, still open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    credentials = f"Authorization: Bearer {token}\r\n" if token else ""
    writer.write(f"GET {EVENTS} HTTP/1.1\r\nHost: 127.0.0.1\r\n{credentials}\r\n".encode())
    async with asyncio.timeout(20):
        try:
            return await reader.readline(), writer
        except ConnectionError:  # closed before the server has read the request
            return b"", writer


async def test_streams_without_a_token_are_limited_and_those_with_one_are_not(
    manager: InMemoryManager,
) -> None:
    server = WebServer(TOKEN, quota=SMALL)
    port = await server.serve(dependencies(manager))
    streams = [await open_stream(port) for _ in range(5)]

    with_token = await open_stream(port, TOKEN)

    statuses = [line.split()[1] for line, _ in streams]
    assert statuses == [b"200"] * 3 + [b"429"] * 2
    assert with_token[0].split()[1] == b"200"
    for _, writer in (*streams, with_token):
        writer.close()
    await server.aclose(0)


async def test_idle_connection_gives_its_place_to_a_caller(manager: InMemoryManager) -> None:
    server = WebServer(TOKEN, quota=SMALL)
    port = await server.serve(dependencies(manager))
    idle = [await asyncio.open_connection("127.0.0.1", port) for _ in range(12)]

    status, writer = await open_stream(port, TOKEN)

    assert status.split()[1] == b"200"
    for _, other in (*idle, (None, writer)):
        other.close()
    await server.aclose(0)


async def test_connections_beyond_the_quota_of_busy_ones_are_closed(
    manager: InMemoryManager,
) -> None:
    server = WebServer(TOKEN, quota=SMALL)
    port = await server.serve(dependencies(manager))
    busy = [await open_stream(port, TOKEN) for _ in range(12)]

    status, writer = await open_stream(port, TOKEN)

    assert {one.split()[1] for one, _ in busy} == {b"200"}
    assert status == b""
    for _, other in (*busy, (None, writer)):
        other.close()
    await server.aclose(0)


async def test_private_listener_demands_the_token_for_reading(manager: InMemoryManager) -> None:
    server = WebServer(TOKEN, private=True)
    port = await server.serve(dependencies(manager))

    without, first = await open_stream(port)
    with_token, second = await open_stream(port, TOKEN)

    assert (without.split()[1], with_token.split()[1]) == (b"401", b"200")
    first.close()
    second.close()
    await server.aclose(0)
