"""Pull requests at a consumer, on a scripted server."""

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_pulls import StandingPulls
from svc_common.messaging.nats_settings import NatsSettings
from tests.support.scripted_bus import ScriptedBus


@asynccontextmanager
async def pulls() -> AsyncIterator[tuple[ScriptedBus, Connection, StandingPulls]]:
    async with ScriptedBus(lambda *_: None) as server:
        connection = Connection(NatsSettings(server.url))
        await connection.open()
        try:
            yield server, connection, StandingPulls(connection, "next", "box", itertools.count(1))
        finally:
            await connection.aclose()


async def test_request_names_its_batch_and_its_number() -> None:
    async with pulls() as (server, _, standing):
        first, second = standing.send(3), standing.send(1, at_once=True)

        one, two = await server.seen("next", 2)

    assert (one.reply, two.reply) == (f"box.{first}", f"box.{second}")
    assert json.loads(one.payload) == {"batch": 3, "expires": 60_000_000_000}
    assert json.loads(two.payload) == {"batch": 1, "no_wait": True}


async def test_deliveries_use_up_the_oldest_request_first() -> None:
    async with pulls() as (_, _, standing):
        first, second = standing.send(1), standing.send(2)

        standing.count_delivery()
        standing.count_delivery()

        assert (first in standing, second in standing, standing.rest) == (False, True, 1)


async def test_delivery_without_a_request_is_ignored() -> None:
    async with pulls() as (_, _, standing):
        standing.count_delivery()

        assert standing.rest == 0


async def test_request_that_the_server_has_ended_brings_nothing() -> None:
    async with pulls() as (_, _, standing):
        number = standing.send(2)

        standing.end(number)
        standing.end("unknown")

        assert standing.rest == 0


async def test_young_request_is_not_overdue() -> None:
    async with pulls() as (_, _, standing):
        standing.send(2)

        standing.end_overdue()

        assert standing.rest == 2


async def test_request_without_a_connection_is_not_counted() -> None:
    async with pulls() as (_, connection, standing):
        await connection.aclose()

        assert standing.send(2) == ""
        assert standing.rest == 0
