"""Held ports, with other processes and, as root, other users."""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import grpc.aio
import pytest

from svc_common.errors import FailedPreconditionError
from svc_standalone.held_ports import FIRST_PORT, HeldPorts

OTHER = 65534
NEEDS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def held() -> Iterator[HeldPorts]:
    held = HeldPorts.draw()
    yield held
    held.close()


BIND = """\
import os, socket, sys
port, uid, *options = map(int, sys.argv[1:])
os.setuid(uid)
one = socket.socket()
for option in options:
    one.setsockopt(socket.SOL_SOCKET, option, 1)
try:
    one.bind(("127.0.0.1", port))
    one.listen()
except OSError:
    sys.exit(3)
"""


def binds(port: int, *options: int, uid: int | None = None) -> bool:
    """Return whether another process can bind and listen with these socket options."""
    words = [str(number) for number in (port, os.getuid() if uid is None else uid, *options)]
    code = subprocess.run([sys.executable, "-ISs", "-c", BIND, *words], check=False).returncode
    assert code in {0, 3}
    return code == 0


SETS = [
    (),
    (socket.SO_REUSEADDR,),
    (socket.SO_REUSEPORT,),
    (socket.SO_REUSEADDR, socket.SO_REUSEPORT),
]


def test_ports_differ_and_are_outside_the_range_of_outgoing_connections(held: HeldPorts) -> None:
    ports = held.numbers

    numbers = {ports.nats, ports.dispatcher, ports.manager_grpc, ports.manager_http}
    assert len(numbers) == 4
    assert all(20_000 <= port < 32_768 for port in numbers)


def test_named_port_is_used() -> None:
    first = HeldPorts.draw()
    wanted = first.numbers.manager_http
    first.close()

    second = HeldPorts.draw(wanted)

    assert second.numbers.manager_http == wanted
    second.close()


def test_named_port_that_is_taken_is_refused_by_its_number() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        port = holder.getsockname()[1]

        with pytest.raises(FailedPreconditionError, match=f"port {port} cannot be used"):
            HeldPorts.draw(port)


def test_two_runs_never_share_a_port() -> None:
    runs = [HeldPorts.draw() for _ in range(50)]

    numbers = [port for run in runs for port in vars_of(run)]
    assert len(set(numbers)) == 200
    for run in runs:
        run.close()


def vars_of(run: HeldPorts) -> list[int]:
    ports = run.numbers
    return [ports.nats, ports.dispatcher, ports.manager_grpc, ports.manager_http]


async def test_grpc_server_of_this_user_binds_the_port_that_is_held(held: HeldPorts) -> None:
    port = held.numbers.manager_grpc
    for _ in range(2):  # again after its end
        server = grpc.aio.server()
        assert server.add_insecure_port(f"127.0.0.1:{port}") == port
        await server.start()
        socket.create_connection(("127.0.0.1", port)).close()
        await server.stop(None)

    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


@NEEDS_ROOT
@pytest.mark.parametrize("options", SETS)
def test_no_other_user_can_take_a_held_port(held: HeldPorts, options: tuple[int, ...]) -> None:
    assert [port for port in vars_of(held) if binds(port, *options, uid=OTHER)] == []


@pytest.mark.parametrize("options", SETS)
def test_port_of_the_bus_is_exclusive_until_it_is_lent(
    held: HeldPorts, options: tuple[int, ...]
) -> None:
    port = held.numbers.nats
    assert not binds(port, *options)

    held.lend_nats()
    assert binds(port, socket.SO_REUSEADDR)
    assert held.take_nats_back()
    assert not binds(port, *options)


def test_port_of_the_bus_that_is_taken_is_drawn_again(held: HeldPorts) -> None:
    held.lend_nats()
    before = held.numbers
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", before.nats))
        thief.listen()

        assert not held.take_nats_back()
        held.redraw_nats()

        after = held.numbers
        assert after.nats != before.nats
        assert after.manager_grpc == before.manager_grpc
        assert not binds(after.nats, socket.SO_REUSEADDR)


def test_connections_wait_while_the_manager_is_away(held: HeldPorts) -> None:
    with socket.create_connection(("127.0.0.1", held.numbers.manager_http)) as client:
        client.sendall(b"hello")

        accepted, _ = held.http.accept()

        assert accepted.recv(5) == b"hello"
        accepted.close()


def test_ports_are_free_after_the_close(held: HeldPorts) -> None:
    ports = vars_of(held)

    held.close()
    held.close()

    assert all(binds(port, socket.SO_REUSEADDR) for port in ports)


async def test_first_connection_demands_the_service_which_then_gets_the_port(
    held: HeldPorts,
) -> None:
    demanded = asyncio.ensure_future(held.compressor.wait_for_client())
    await asyncio.sleep(0)
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{held.numbers.compressor}")
    method: Any = channel.unary_unary("/some.Service/Method")
    call = method(b"", wait_for_ready=True, timeout=20)

    async with asyncio.timeout(20):
        await demanded
    server = grpc.aio.server(options=[("grpc.so_reuseport", 1)])
    server.add_insecure_port(f"127.0.0.1:{held.numbers.compressor}")
    await server.start()

    with pytest.raises(grpc.aio.AioRpcError) as answer:
        await call
    assert answer.value.code() is grpc.StatusCode.UNIMPLEMENTED
    await channel.close()
    await server.stop(0)


def test_first_and_last_port_of_the_range_may_be_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    draw = secrets.randbelow

    def count(limit: int) -> int:
        counts.append(limit)
        return draw(limit)

    monkeypatch.setattr(secrets, "randbelow", count)
    HeldPorts.draw().close()

    assert (FIRST_PORT, {FIRST_PORT + limit - 1 for limit in counts}) == (20_000, {32_767})


def test_named_port_with_an_old_connection_is_used_again() -> None:
    """The kernel keeps a connection for a minute after its end (TIME_WAIT)."""
    drawn = HeldPorts.draw()
    wanted = drawn.numbers.manager_http
    drawn.close()
    first = HeldPorts.draw(wanted)
    with socket.create_connection(("127.0.0.1", wanted)) as client:
        first.http.accept()[0].close()
        assert client.recv(1) == b""
    first.close()

    second = HeldPorts.draw(wanted)

    assert second.numbers.manager_http == wanted
    second.close()


async def test_service_is_demanded_by_each_first_client_and_by_nothing_else(
    held: HeldPorts,
) -> None:
    for _ in range(2):
        demanded = asyncio.ensure_future(held.nas.wait_for_client())
        for _ in range(5):
            await asyncio.sleep(0)
        assert not demanded.done()

        socket.create_connection(("127.0.0.1", held.numbers.nas)).close()

        async with asyncio.timeout(20):
            await demanded


async def test_close_ends_the_listening_for_clients(held: HeldPorts) -> None:
    ports = (held.numbers.compressor, held.numbers.nas)
    waits = [asyncio.ensure_future(one.wait_for_client()) for one in (held.compressor, held.nas)]
    await asyncio.sleep(0)

    held.close()

    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
    for wait in waits:
        wait.cancel()
    ends = await asyncio.gather(*waits, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError] * 2
