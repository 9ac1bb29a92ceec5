"""Copies and direct gets at a scripted server."""

import asyncio

from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_copies import CopyFeed, DirectReader
from svc_common.messaging.nats_jetstream import JetStream
from svc_common.messaging.nats_settings import NatsSettings
from tests.support.scripted_bus import Published, ScriptedBus, encode_headers

HEADERS = encode_headers(
    {
        "Nats-Subject": "a.b",
        "Nats-Sequence": "7",
        "Nats-Time-Stamp": "2026-01-01T00:00:00.000001Z",
    }
)
END = b"NATS/1.0 204 EOB\r\n\r\n"
NO_RESPONDERS = b"NATS/1.0 503\r\n\r\n"


async def test_feed_asks_for_a_read_first_and_after_each_reconnection() -> None:
    async with asyncio.timeout(10), ScriptedBus(lambda *_: None) as server:
        connection = Connection(NatsSettings(server.url))
        await connection.open()
        try:
            async with CopyFeed(JetStream(connection), "copies") as feed:
                assert await feed.get() is None
                server.disconnect()
                assert await feed.get() is None
        finally:
            await connection.aclose()


async def test_feed_ends_with_its_subscription() -> None:
    async with asyncio.timeout(10), ScriptedBus(lambda *_: None) as server:
        connection = Connection(NatsSettings(server.url))
        await connection.open()
        try:
            async with CopyFeed(JetStream(connection), "copies"):
                await connection.flush()
                sid = server.sid_of("copies")
            await connection.flush()

            assert [b"UNSUB", b"%d" % sid] in [line.split() for line in server.lines]
        finally:
            await connection.aclose()


async def test_batch_is_asked_for_until_the_stream_exists() -> None:
    answers = [NO_RESPONDERS, NO_RESPONDERS, END]

    def publish(server: ScriptedBus, request: Published) -> None:
        status = answers.pop(0)
        if status == END:
            server.deliver(request.reply, request.reply, headers=HEADERS, payload=b"x")
        server.deliver(request.reply, request.reply, headers=status)

    async with asyncio.timeout(10), ScriptedBus(publish) as server:
        connection = Connection(NatsSettings(server.url))
        await connection.open()
        try:
            (message,) = await DirectReader(JetStream(connection), "S").batch("a.*", 6)
        finally:
            await connection.aclose()

    assert (message.subject, message.sequence, message.payload) == ("a.b", 7, b"x")
    assert answers == []
