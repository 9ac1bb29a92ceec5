"""Probe of the bus at a server of the test and at a real one."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from svc_common.messaging.permissions import silent_user, users_block
from svc_standalone.bus_probe import BusLogin, BusProbe
from tests.support.servers import NatsServer

LIMIT_S = 20.0
"""Of an answer that comes."""
SHORT_S = 0.05
"""Of an answer that does not come."""


class ScriptedBus:
    """Server of the protocol that keeps what it is sent, and may leave PING without a PONG."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = []
        """Lines of each connection."""
        self.answers = True
        self.owed: list[asyncio.StreamWriter] = []
        self._asked = asyncio.Event()
        self.writers: list[asyncio.StreamWriter] = []
        self.ended: list[asyncio.Future[None]] = []
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines: list[str] = []
        self.lines.append(lines)
        self.writers.append(writer)
        ended = asyncio.get_running_loop().create_future()
        self.ended.append(ended)
        writer.write(b'INFO {"server_id": "t"')
        writer.write(b"}\r\nPING\r\n")
        while True:
            try:
                line = (await reader.readline()).decode().strip()
            except ConnectionError:
                line = ""
            if not line:
                break
            lines.append(line)
            if line == "PING":
                self.owed.append(writer)
                self._asked.set()
                self.answer()
        writer.close()
        ended.set_result(None)

    def answer(self) -> None:
        while self.answers and self.owed:
            self.owed.pop().write(b"PONG\r\n")
            self._asked.clear()

    async def until_owed(self) -> None:
        async with asyncio.timeout(LIMIT_S):
            await self._asked.wait()

    def disconnect(self) -> None:
        self.writers[-1].write(b"-ERR 'Stale Connection'\r\n")
        self.writers[-1].close()


@asynccontextmanager
async def scripted_bus() -> AsyncIterator[ScriptedBus]:
    bus = ScriptedBus()
    server = await asyncio.start_server(bus.serve, "127.0.0.1", 0)
    bus.port = server.sockets[0].getsockname()[1]
    try:
        yield bus
    finally:
        server.close()
        for writer in bus.writers:
            writer.close()
        async with asyncio.timeout(LIMIT_S):
            await asyncio.gather(*bus.ended)


class Pongs:
    """Counter of the answers."""

    def __init__(self) -> None:
        self.count = 0
        self.came = asyncio.Event()

    def note(self) -> None:
        self.count += 1
        self.came.set()


@contextmanager
def probe_of(port: int) -> Iterator[tuple[BusProbe, Pongs]]:
    pongs = Pongs()
    probe = BusProbe(BusLogin(port, "supervisor", "secret"), pongs.note)
    try:
        yield probe, pongs
    finally:
        probe.close()


async def test_all_pings_use_one_connection_with_credentials() -> None:
    async with scripted_bus() as bus:
        with probe_of(bus.port) as (probe, pongs):
            found = [await probe.ping(LIMIT_S) for _ in range(3)]

    assert found == [True] * 3
    assert pongs.count == 3
    (lines,) = bus.lines
    operation, _, options = lines[0].partition(" ")
    assert operation == "CONNECT"
    assert json.loads(options)["user"] == "supervisor"
    assert json.loads(options)["pass"] == "secret"
    assert lines[1:] == ["PING", "PONG", "PING", "PING"]


async def test_full_queue_of_new_connections_is_no_silence() -> None:
    loop = asyncio.get_running_loop()
    with socket.socket() as listening, probe_of(0) as (_, pongs):
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        listening.setblocking(False)
        port = listening.getsockname()[1]
        probe = BusProbe(BusLogin(port, "supervisor", "secret"), pongs.note)
        first = asyncio.create_task(probe.ping(LIMIT_S))
        server, _ = await loop.sock_accept(listening)
        server.setblocking(False)
        await loop.sock_sendall(server, b"INFO {}\r\nPONG\r\n")
        assert await first
        flood = [socket.socket() for _ in range(8)]
        for one in flood:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(SHORT_S):
                await asyncio.open_connection("127.0.0.1", port)

        second = asyncio.create_task(probe.ping(LIMIT_S))
        received = b""
        while received.count(b"PING\r\n") < 2:
            received += await loop.sock_recv(server, 4096)
        await loop.sock_sendall(server, b"PONG\r\n")

        assert await second
        for one in [*flood, server]:
            one.close()
        probe.close()


async def test_answer_that_comes_late_is_a_sign_when_it_comes() -> None:
    async with scripted_bus() as bus:
        with probe_of(bus.port) as (probe, pongs):
            await probe.ping(LIMIT_S)
            bus.answers = False
            silent = [await probe.ping(SHORT_S) for _ in range(2)]
            before = pongs.count
            pongs.came.clear()
            bus.answers = True
            await bus.until_owed()
            bus.answer()
            async with asyncio.timeout(LIMIT_S):
                await pongs.came.wait()

    assert silent == [False, False]
    assert (before, pongs.count) == (1, 2)
    assert len(bus.lines) == 1
    assert bus.lines[0].count("PING") == 2  # none is repeated while one is unanswered


async def test_connection_that_ended_is_opened_again() -> None:
    async with scripted_bus() as bus:
        with probe_of(bus.port) as (probe, _):
            await probe.ping(LIMIT_S)
            bus.answers = False
            waiting = asyncio.create_task(probe.ping(LIMIT_S))
            await bus.until_owed()
            bus.disconnect()
            cut = await waiting
            bus.owed.clear()
            bus.answers = True

            again = await probe.ping(LIMIT_S)

    assert (cut, again) == (False, True)
    assert len(bus.lines) == 2


async def test_closed_port_is_no_answer() -> None:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        with probe_of(bound.getsockname()[1]) as (probe, pongs):
            assert not await probe.ping(LIMIT_S)

    assert pongs.count == 0


async def test_server_of_another_protocol_is_disconnected() -> None:
    writers = []

    async def talk(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        writer.write(b"x" * 3_000_000)

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    with probe_of(server.sockets[0].getsockname()[1]) as (probe, pongs):
        assert not await probe.ping(LIMIT_S)

    for writer in writers:  # else its end warns, where the loop has not seen the connection's
        writer.close()
    server.close()
    assert pongs.count == 0


async def test_real_server_is_probed_through_a_reload(own_nats: NatsServer) -> None:
    own_nats.stop()
    own_nats.more = users_block([(silent_user("supervisor"), "secret")])
    own_nats.start()
    with probe_of(own_nats.port) as (probe, pongs):
        assert await probe.ping(LIMIT_S)
        own_nats.send_signal(signal.SIGHUP)
        assert await probe.ping(LIMIT_S)

    assert pongs.count == 2


async def test_wrong_password_is_no_answer(own_nats: NatsServer) -> None:
    own_nats.stop()
    own_nats.more = users_block([(silent_user("supervisor"), "another")])
    own_nats.start()

    with probe_of(own_nats.port) as (probe, pongs):
        assert not await probe.ping(LIMIT_S)

    assert pongs.count == 0


def test_password_of_the_login_is_not_shown() -> None:
    assert "secret" not in repr(BusLogin(4222, "supervisor", "secret"))


async def test_closed_probe_ends_its_connection() -> None:
    async with scripted_bus() as bus:
        with probe_of(bus.port) as (probe, _):
            assert await probe.ping(LIMIT_S)

            probe.close()

            async with asyncio.timeout(LIMIT_S):
                await bus.ended[0]
            assert len(bus.lines) == 1


async def test_greeting_of_a_megabyte_is_read() -> None:
    """It comes in several pieces, each of which is an incomplete line."""
    ended = asyncio.get_running_loop().create_future()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b'INFO {"servers": "' + b"x" * 1_000_000 + b'"}\r\n')
        while line := await reader.readline():
            if line == b"PING\r\n":
                writer.write(b"PONG\r\n")
                break
        writer.close()
        ended.set_result(None)

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    with probe_of(server.sockets[0].getsockname()[1]) as (probe, pongs):
        assert await probe.ping(LIMIT_S)

    async with asyncio.timeout(LIMIT_S):
        await ended
    server.close()
    assert pongs.count == 1
