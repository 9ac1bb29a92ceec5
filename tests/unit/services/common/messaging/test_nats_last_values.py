"""Last values at a scripted server: copies that are old, late, or from a bus without its data."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager

from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_jetstream import JetStream
from svc_common.messaging.nats_last_values import NatsLastValues
from svc_common.messaging.nats_settings import NatsSettings
from tests.support.scripted_bus import Published, ScriptedBus, encode_headers

READ = "nni.api.DIRECT.GET.POOLS"
END = b"NATS/1.0 204 EOB\r\n\r\n"
NOTHING = b"NATS/1.0 404 Message Not Found\r\n\r\n"
NEED = "nni.pool.p.need"
COPIES = "nni.copy.pool.p.need"

Message = tuple[int, int, bytes]
"""Sequence, second of its time, and value of a stored message."""


def headers(message: Message) -> bytes:
    sequence, second, _ = message
    return encode_headers(
        {
            "Nats-Subject": NEED,
            "Nats-Sequence": str(sequence),
            "Nats-Time-Stamp": f"2026-01-01T00:00:{second:02}.000000001Z",
        }
    )


@asynccontextmanager
async def opened(*kept: Message) -> AsyncIterator[tuple[ScriptedBus, NatsLastValues]]:
    """Open last values at a server that has one message after the other; the last one stays."""
    remaining = list(kept)

    def publish(server: ScriptedBus, request: Published) -> None:
        assert request.subject == READ
        if json.loads(request.payload)["seq"] > 1:
            server.deliver(request.reply, request.reply, headers=NOTHING)
            return
        message = remaining.pop(0) if len(remaining) > 1 else remaining[0]
        server.deliver(request.reply, request.reply, headers=headers(message), payload=message[2])
        server.deliver(request.reply, request.reply, headers=END)

    async with asyncio.timeout(10), ScriptedBus(publish) as server:
        connection = Connection(NatsSettings(server.url))
        await connection.open()
        try:
            yield server, NatsLastValues(JetStream(connection, confined=True))
        finally:
            await connection.aclose()


def copy(server: ScriptedBus, message: Message) -> None:
    server.deliver(COPIES, COPIES, headers=headers(message), payload=message[2])


async def test_copy_that_a_read_has_overtaken_is_dropped() -> None:
    async with opened((4, 4, b"d")) as (server, values), aclosing(values.follow(NEED)) as followed:
        assert (await anext(followed)).payload == b"d"
        for message in ((3, 3, b"c"), (4, 4, b"d"), (5, 5, b"e")):
            copy(server, message)

        assert (await anext(followed)).payload == b"e"


async def test_read_from_a_server_that_lags_behind_changes_nothing() -> None:
    async with (
        opened((4, 4, b"d"), (3, 3, b"c")) as (server, values),
        aclosing(values.follow(NEED)) as followed,
    ):
        assert (await anext(followed)).payload == b"d"
        server.disconnect()
        waiting = asyncio.ensure_future(anext(followed))
        await server.seen(READ, 4)  # each read is a batch and the notice of its end
        copy(server, (5, 5, b"e"))

        assert (await waiting).payload == b"e"


async def test_value_of_a_bus_that_lost_its_data_is_new() -> None:
    async with (
        opened((4, 4, b"d"), (1, 9, b"a")) as (server, values),
        aclosing(values.follow(NEED)) as followed,
    ):
        assert (await anext(followed)).payload == b"d"
        server.disconnect()

        assert (await anext(followed)).payload == b"a"
