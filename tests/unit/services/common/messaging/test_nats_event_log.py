"""Event log at a scripted server: batches that break off, copies that are missing."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager

import pytest

from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_event_log import NatsEventLog
from svc_common.messaging.nats_jetstream import JetStream, JetStreamError
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.ports import LogMessage
from tests.support.scripted_bus import Published, ScriptedBus, encode_headers

TIME = "2026-01-01T00:00:00.123456789Z"
TIME_NS = 1_767_225_600_123_456_000
END = b"NATS/1.0 204 EOB\r\n\r\n"
NOTHING = b"NATS/1.0 404 Message Not Found\r\n\r\n"
DIRECT_GET = "nni.api.DIRECT.GET.EXPERIMENTS"
COPIES = "nni.copy.*"

Answer = Callable[[ScriptedBus, Published, int], None]
"""Answer to a direct get for the messages from a sequence on."""


def headers(sequence: int, previous: int = 0) -> bytes:
    return encode_headers(
        {
            "Nni-Epoch": "2",
            "Nni-Append": f"a{sequence}",
            "Nats-Subject": "nni.experiment.e.event",
            "Nats-Sequence": str(sequence),
            "Nats-Time-Stamp": TIME,
            "Nats-Last-Sequence": str(previous),
        }
    )


def send(server: ScriptedBus, request: Published, *sequences: int, status: bytes = END) -> None:
    """Answer a direct get; without a status the answer breaks off."""
    for sequence in sequences:
        server.deliver(request.reply, request.reply, headers=headers(sequence), payload=b"x")
    if status:
        server.deliver(request.reply, request.reply, headers=status)


@asynccontextmanager
async def opened(answer: Answer, *lasts: int) -> AsyncIterator[tuple[ScriptedBus, NatsEventLog]]:
    """Open a log at a server that names one sequence after the other as the last one."""
    remaining = list(lasts)

    def publish(server: ScriptedBus, message: Published) -> None:
        if message.subject.startswith(DIRECT_GET):
            answer(server, message, json.loads(message.payload)["seq"])
        elif message.subject.startswith("nni.api.STREAM.MSG.GET"):
            last = remaining.pop(0) if len(remaining) > 1 else remaining[0]
            found = {
                "subject": "nni.experiment.e.event",
                "seq": last,
                "hdrs": base64.b64encode(headers(last)).decode(),
                "time": TIME,
            }
            server.answer(message, {"message": found})

    async with asyncio.timeout(10), ScriptedBus(publish) as server:
        connection = Connection(NatsSettings(server.url))
        await connection.open()
        try:
            yield server, NatsEventLog(JetStream(connection, confined=True))
        finally:
            await connection.aclose()


async def read(log: NatsEventLog, after: int = 0) -> list[int]:
    return [message.sequence async for message in log.read("e", after)]


async def test_message_has_the_facts_of_its_headers() -> None:
    async with opened(lambda server, request, _: send(server, request, 4), 4) as (_, log):
        (message,) = [message async for message in log.read("e")]

    assert message == LogMessage("e", 4, b"x", 2, "a4", TIME_NS)


async def test_batches_are_read_up_to_the_end_at_the_call() -> None:
    def answer(server: ScriptedBus, request: Published, start: int) -> None:
        send(server, request, *([2, 3] if start == 1 else [5, 8, 9]))

    async with opened(answer, 8) as (_, log):
        assert await read(log) == [2, 3, 5, 8]


async def test_nothing_is_asked_for_behind_the_end() -> None:
    async with opened(lambda *_: None, 8) as (server, log):
        assert await read(log, 8) == []

    assert not any(sent.subject.startswith(DIRECT_GET) for sent in server.published)


async def test_batch_that_a_lost_connection_cuts_is_read_on() -> None:
    def answer(server: ScriptedBus, request: Published, start: int) -> None:
        if start == 1:
            send(server, request, 2, 3, status=b"")
            server.disconnect()
        else:
            send(server, request, 5)

    async with opened(answer, 5) as (server, log):
        assert await read(log) == [2, 3, 5]
        assert server.connections == 2


async def test_log_that_is_deleted_while_it_is_read_ends() -> None:
    def answer(server: ScriptedBus, request: Published, start: int) -> None:
        send(server, request, *([2] if start == 1 else []), status=END if start == 1 else NOTHING)

    async with opened(answer, 5, 2) as (_, log):
        assert await read(log) == [2]


async def test_replica_that_is_behind_is_asked_again() -> None:
    asked: list[int] = []

    def answer(server: ScriptedBus, request: Published, start: int) -> None:
        asked.append(start)
        send(server, request, *([5] if len(asked) > 1 else []), status=NOTHING)

    async with opened(answer, 5) as (_, log):
        assert await read(log) == [5]


async def test_refused_batch_raises() -> None:
    refusal = b"NATS/1.0 408 Bad Request\r\n\r\n"

    async with opened(lambda server, request, _: send(server, request, status=refusal), 5) as (
        _,
        log,
    ):
        with pytest.raises(JetStreamError, match="408"):
            await read(log)


async def test_copies_are_followed_without_reading_the_stream() -> None:
    def answer(server: ScriptedBus, request: Published, _start: int) -> None:
        send(server, request, 1)

    async with opened(answer, 1) as (server, log), aclosing(log.follow_all()) as messages:
        assert (await anext(messages)).sequence == 1
        for sequence in (1, 2, 3):  # the first copy was sent before the stream was read
            server.deliver(COPIES, "nni.copy.e", headers=headers(sequence), payload=b"x")

        assert [(await anext(messages)).sequence for _ in range(2)] == [2, 3]
        assert len(await server.seen(DIRECT_GET)) == 1


async def test_missing_copies_are_read_from_the_stream() -> None:
    def answer(server: ScriptedBus, request: Published, start: int) -> None:
        send(server, request, *([1] if start == 1 else [2, 3, 4]))

    async with opened(answer, 1, 4) as (server, log), aclosing(log.follow_all()) as messages:
        assert (await anext(messages)).sequence == 1
        server.deliver(COPIES, "nni.copy.e", headers=headers(4, 1), payload=b"x")

        assert [(await anext(messages)).sequence for _ in range(3)] == [2, 3, 4]


async def test_copy_of_one_log_continues_the_last_message_of_that_log() -> None:
    def answer(server: ScriptedBus, request: Published, _start: int) -> None:
        send(server, request, 1)

    async with opened(answer, 1) as (server, log), aclosing(log.follow("e")) as messages:
        assert (await anext(messages)).sequence == 1
        server.deliver("nni.copy.e", "nni.copy.e", headers=headers(9, 1), payload=b"x")

        assert (await anext(messages)).sequence == 9
        assert len(await server.seen(DIRECT_GET)) == 1


async def test_messages_stored_during_an_outage_are_read_after_it() -> None:
    def answer(server: ScriptedBus, request: Published, start: int) -> None:
        send(server, request, *([1] if start == 1 else [2]))

    async with opened(answer, 1, 2) as (server, log), aclosing(log.follow_all()) as messages:
        assert (await anext(messages)).sequence == 1
        server.disconnect()

        assert (await anext(messages)).sequence == 2
