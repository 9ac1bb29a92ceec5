import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_jetstream import JetStream
from svc_common.messaging.nats_requests import RequestTable
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.nats_tasks import NatsTaskFeed, NatsTaskQueue
from tests.support.scripted_bus import Published, ScriptedBus

NEXT = "$JS.API.CONSUMER.MSG.NEXT.TASKS.pool-p"
NEXT_RETRY = "$JS.API.CONSUMER.MSG.NEXT.TASKS.retry-p"
NO_MESSAGES = b"NATS/1.0 404 No Messages\r\n\r\n"
EXPIRED = b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 2\r\n\r\n"


def answer(server: ScriptedBus, message: Published) -> None:
    if message.subject.startswith("$JS.API.CONSUMER.DURABLE"):
        server.answer(message, {"name": "pool-p"})
    elif message.subject == NEXT_RETRY and b"no_wait" in message.payload:
        server.deliver(message.reply, message.reply, headers=NO_MESSAGES)
    elif message.reply and not message.subject.startswith("$JS.API"):
        server.deliver(message.reply, message.reply)


@asynccontextmanager
async def feed() -> AsyncIterator[tuple[ScriptedBus, NatsTaskFeed]]:
    async with asyncio.timeout(10), ScriptedBus(answer) as server:
        connection = Connection(NatsSettings(server.url))
        await connection.open()
        opened = await NatsTaskQueue(JetStream(connection)).pull("p")
        try:
            yield server, opened
        finally:
            await opened.aclose()
            await connection.aclose()


def batch(message: Published) -> int:
    size: int = json.loads(message.payload)["batch"]
    return size


def send(server: ScriptedBus, request: Published, sequence: int, consumer: str = "pool-p") -> None:
    server.deliver(
        request.reply,
        "nni.task.p",
        f"$JS.ACK.TASKS.{consumer}.1.{sequence}.{sequence}.0.0",
        payload=b"task",
    )


async def test_grants_of_one_turn_are_one_request() -> None:
    async with feed() as (server, tasks):
        tasks.grant(1)
        tasks.grant(2)

        (request,) = await server.seen(NEXT)

    assert batch(request) == 3


async def test_retried_tasks_are_requested_before_others() -> None:
    async with feed() as (server, tasks):
        tasks.grant(2)

        await server.seen(NEXT)

        pulls = [sent for sent in server.published if ".MSG.NEXT." in sent.subject]
    assert [(sent.subject, "no_wait" in json.loads(sent.payload)) for sent in pulls] == [
        (NEXT_RETRY, True),
        (NEXT_RETRY, False),
        (NEXT, False),
    ]


async def test_task_beyond_the_grants_is_given_back_at_once() -> None:
    async with feed() as (server, tasks):
        tasks.grant(1)
        (request,) = await server.seen(NEXT)
        send(server, request, 1, "retry-p")
        await anext(tasks)

        send(server, request, 2)

        (given_back,) = await server.seen("$JS.ACK.TASKS.pool-p.1.2.2")
    assert given_back.payload == b"-NAK"


async def test_standing_request_for_retried_tasks_is_not_made_twice() -> None:
    async with feed() as (server, tasks):
        tasks.grant(1)
        (request,) = await server.seen(NEXT)
        send(server, request, 1)
        await anext(tasks)

        tasks.grant(1)
        await server.seen(NEXT, 2)

        assert len([sent for sent in server.published if sent.subject == NEXT_RETRY]) == 2


async def test_expired_request_is_made_again_for_its_rest() -> None:
    async with feed() as (server, tasks):
        tasks.grant(3)
        (request,) = await server.seen(NEXT)
        send(server, request, 1)
        await anext(tasks)

        server.deliver(request.reply, request.reply, headers=EXPIRED)
        _, again = await server.seen(NEXT, 2)

        assert batch(again) == 2
        assert tasks.granted == 2


async def test_requests_are_made_again_after_a_reconnection() -> None:
    async with feed() as (server, tasks):
        tasks.grant(2)
        tasks_before = await server.seen(NEXT)

        server.disconnect()
        _, again = await server.seen(NEXT, 2)

        assert (batch(tasks_before[0]), batch(again)) == (2, 2)


async def test_grant_while_the_bus_is_away_is_asked_for_later() -> None:
    async with feed() as (server, tasks):
        server.disconnect()
        await tasks._connection.wait_disconnected()
        tasks.grant(4)

        (request,) = await server.seen(NEXT)

        assert batch(request) == 4


async def test_task_that_arrives_during_the_close_is_given_back() -> None:
    async with feed() as (server, tasks):
        tasks.grant(1)
        (request,) = await server.seen(NEXT)
        send(server, request, 1)

        await tasks.aclose()

        (given_back,) = await server.seen("$JS.ACK.TASKS.pool-p.1.1.1")
    assert given_back.payload == b"-NAK"


async def test_acknowledgement_of_a_lost_delivery_is_repeated_soon() -> None:
    rare_sweeps = RequestTable(sweep_interval_s=60.0)  # the request itself is never overdue
    subject = "$JS.ACK.TASKS.pool-p.1.1.1"

    def answer_second(server: ScriptedBus, message: Published) -> None:
        acknowledgements = [sent for sent in server.published if sent.subject == subject]
        if message.reply and (message.subject != subject or len(acknowledgements) > 1):
            server.deliver(message.reply, message.reply)

    async with asyncio.timeout(10), ScriptedBus(answer_second) as server:
        connection = Connection(NatsSettings(server.url), rare_sweeps)
        await connection.open()

        await NatsTaskQueue(JetStream(connection)).ack(subject)

        assert [sent.payload for sent in await server.seen(subject, 2)] == [b"+ACK", b"+ACK"]
        await connection.aclose()
