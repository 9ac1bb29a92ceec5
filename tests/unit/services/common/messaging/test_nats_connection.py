"""Connection to a scripted server: what is on the wire, in pieces or broken."""

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from nats.aio.client import Client

from svc_common.access.transport import Transport
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_requests import RequestTable
from svc_common.messaging.nats_settings import NatsSettings, Server
from tests.support.certificates import Authority
from tests.support.scripted_bus import Published, ScriptedBus, encode_headers
from tests.support.tls_proxy import tls_proxy

Message = tuple[str, str, dict[str, str], bytes]


def ignore(_server: ScriptedBus, _message: Published) -> None:
    """Answer nothing."""


@asynccontextmanager
async def opened(
    server: ScriptedBus,
    settings: NatsSettings | None = None,
    requests: RequestTable | None = None,
) -> AsyncIterator[Connection]:
    connection = Connection(settings or NatsSettings(server.url), requests)
    async with asyncio.timeout(20):
        await connection.open()
        try:
            yield connection
        finally:
            await connection.aclose()


def collect(connection: Connection, subject: str, count: int) -> asyncio.Future[list[Message]]:
    """Return the future of the first ``count`` messages of a subject."""
    messages: list[Message] = []
    complete: asyncio.Future[list[Message]] = asyncio.get_running_loop().create_future()

    def receive(subject: str, reply: str, headers: dict[str, str], payload: bytes) -> None:
        messages.append((subject, reply, headers, payload))
        if len(messages) == count:
            complete.set_result(messages)

    connection.subscribe(subject, receive)
    return complete


HEADERS = encode_headers({"Nats-Msg-Id": "7"})
BEAT = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 5\r\n\r\n"
STREAM = (
    b"+OK\r\nPING\r\nPONG\r\n"
    b"MSG a.b {sid} 5\r\nhello\r\n"
    b"MSG a.b {sid} reply.to 2\r\n\r\n\r\n"
    + b"HMSG a.c {sid} %d %d\r\n" % (len(HEADERS), len(HEADERS) + 3)
    + HEADERS
    + b"abc\r\n"
    + b"HMSG a.c {sid} r %d %d\r\n" % (len(BEAT), len(BEAT))
    + BEAT
    + b'\r\nINFO {{"max_payload": 1024}}\r\nMSG a.d {sid} 0\r\n\r\n'
)
MESSAGES = [
    ("a.b", "", {}, b"hello"),
    ("a.b", "reply.to", {}, b"\r\n"),
    ("a.c", "", {"Nats-Msg-Id": "7"}, b"abc"),
    (
        "a.c",
        "r",
        {"Status": "100", "Description": "Idle Heartbeat", "Nats-Last-Consumer": "5"},
        b"",
    ),
    ("a.d", "", {}, b""),
]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 50, 10_000])
async def test_messages_are_the_same_however_the_bytes_are_cut(size: int) -> None:
    async with ScriptedBus(ignore) as server, opened(server) as connection:
        messages = collect(connection, "a.*", len(MESSAGES))
        await connection.flush()
        sid = b"%d" % server.sid_of("a.*")
        stream = STREAM.replace(b"{sid}", sid).replace(b"{{", b"{").replace(b"}}", b"}")

        for start in range(0, len(stream), size):
            await server.send_bytes(stream[start : start + size])

        assert await messages == MESSAGES


async def test_large_message_in_many_pieces_is_whole() -> None:
    payload = bytes(range(256)) * 4096
    async with ScriptedBus(ignore) as server, opened(server) as connection:
        messages = collect(connection, "a", 2)
        await connection.flush()
        stream = b"MSG a {sid} %d\r\n" % len(payload) + payload + b"\r\nMSG a {sid} 0\r\n\r\n"
        stream = stream.replace(b"{sid}", b"%d" % server.sid_of("a"))

        for start in range(0, len(stream), 65_536):
            await server.send_bytes(stream[start : start + 65_536])

        assert [message[3] for message in await messages] == [payload, b""]


@pytest.mark.parametrize(
    "line", [b"HELLO\r\n", b"MSG a\r\n", b"MSG a x 5\r\n", b"INFO nope\r\n", b"x" * 1_100_000]
)
async def test_server_that_breaks_the_protocol_is_connected_to_again(line: bytes) -> None:
    async with (
        ScriptedBus(ignore) as server,
        opened(server, NatsSettings(server.url, heartbeat_s=0.5)) as connection,
    ):
        await server.send_bytes(line)

        await connection.wait_disconnected()
        await connection.wait_connected()
        await connection.flush()

        assert server.connections == 2


async def test_message_that_cannot_be_handled_makes_the_connection_anew() -> None:
    async with ScriptedBus(ignore) as server, opened(server) as connection:
        connection.subscribe("a", lambda *_: 1 / 0)
        await connection.flush()

        server.deliver("a", "a")
        await connection.wait_disconnected()
        await connection.wait_connected()
        await connection.flush()

        assert server.connections == 2


class LeavingBus(ScriptedBus):
    """Server that announces its end to its first client together with its first answer."""

    def deliver(
        self, to: str, subject: str, reply: str = "", headers: bytes = b"", payload: bytes = b""
    ) -> None:
        super().deliver(to, subject, reply, headers, payload)
        if self.connections == 1:
            assert self._writer is not None
            self._writer.write(b'INFO {"ldm": true}\r\n')


async def test_connection_lost_right_after_the_handshake_is_not_reported_as_usable() -> None:
    async with (
        LeavingBus(ignore) as server,
        opened(server, NatsSettings(f"{server.url},{server.url}")) as connection,
    ):
        await connection.flush()

        assert server.connections == 2


async def test_publishing_states_all_sizes() -> None:
    async with ScriptedBus(ignore) as server, opened(server) as connection:
        connection.publish("a", b"xy")
        connection.publish("a", b"", reply="r")
        connection.publish("a", b"xyz", reply="r", headers={"Nats-Msg-Id": "7"})
        await connection.flush()

        assert server.published == [
            Published("a", "", b"", b"xy"),
            Published("a", "r", b"", b""),
            Published("a", "r", HEADERS, b"xyz"),
        ]


async def test_client_introduces_itself_before_it_subscribes() -> None:
    async with ScriptedBus(ignore) as server:
        settings = NatsSettings(server.url, name="manager", user="u", password="p")
        async with opened(server, settings):
            connect, *rest = server.lines

    options = json.loads(connect.removeprefix(b"CONNECT "))
    assert (options["name"], options["user"], options["pass"]) == ("manager", "u", "p")
    assert (options["headers"], options["no_responders"]) == (True, True)
    assert [line.split()[0] for line in rest[:3]] == [b"PING", b"SUB", b"PUB"]


async def test_drain_ends_the_subscription_before_it_waits() -> None:
    async with ScriptedBus(ignore) as server, opened(server) as connection:
        sid = connection.subscribe("a.*", lambda *_: None)
        await connection.flush()
        server.lines.clear()

        await connection.drain(sid)

        words = [line.split()[0] for line in server.lines]
        assert words[:4] == [b"UNSUB", b"PUB", b"UNSUB", b"PUB"]


async def test_server_that_answers_keeps_its_connection() -> None:
    rare_sweeps = RequestTable(sweep_interval_s=60.0)  # no heartbeat is overdue
    async with (
        ScriptedBus(ignore) as server,
        opened(server, NatsSettings(server.url, heartbeat_s=0.001), rare_sweeps) as connection,
    ):
        while len(server.lines) < 10:
            server.line_arrived.clear()
            await server.line_arrived.wait()

        assert connection.connected
        assert server.connections == 1


class ClosedAsItConnects(Connection):
    """Connection that is closed in the turn of the loop in which it has connected."""

    async def _connect(self, client: Client, server: Server, wait_s: float) -> None:
        await super()._connect(client, server, wait_s)
        self.ending = asyncio.create_task(self.aclose())


async def test_connection_closed_at_the_moment_it_connects_ends() -> None:
    async with ScriptedBus(ignore) as server, asyncio.timeout(20):
        connection = ClosedAsItConnects(NatsSettings(server.url))
        await connection.open()

        await connection.ending

        assert connection.closed
        assert not connection.connected


def test_web_sockets_are_not_imported_and_can_be_later() -> None:
    pytest.importorskip("aiohttp")
    script = (
        "import importlib.util, sys, svc_common.messaging.nats_connection\n"
        "print('aiohttp' in sys.modules, importlib.util.find_spec('aiohttp') is not None)"
    )

    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True
    )

    assert done.stdout.split() == ["False", "True"]


async def test_authority_that_is_missing_for_a_moment_does_not_end_the_connection(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    own, missed = authority.sign("bus"), asyncio.Event()

    def context() -> ssl.SSLContext:
        if not authority.ca.exists():
            missed.set()
        return Transport(ca=authority.ca).client_context()

    async with ScriptedBus(ignore) as server:
        address = server.url.removeprefix("nats://")
        with tls_proxy(address, own.certificate, own.key) as encrypted:
            settings = NatsSettings(f"tls://{encrypted}", tls=context, tls_first=True)
            async with opened(server, settings) as connection:
                replaced = authority.ca.rename(tmp_path / "replaced.pem")
                server.disconnect()
                await missed.wait()

                replaced.rename(authority.ca)
                await connection.wait_connected()

                assert server.connections == 2
