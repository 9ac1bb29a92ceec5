import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager

import pytest

from svc_common.errors import LostOwnershipError, OutOfRoomError
from svc_common.messaging import nats_jetstream
from svc_common.messaging.nats_bus import NatsInbox
from svc_common.messaging.nats_connection import Connection
from svc_common.messaging.nats_event_log import NatsEventLog
from svc_common.messaging.nats_jetstream import JetStream, JetStreamError
from svc_common.messaging.nats_settings import NatsSettings
from tests.support.scripted_bus import Published, ScriptedBus, decode_headers, encode_headers

EVENT = "nni.experiment.e.event"
WRONG_SEQUENCE = {"error": {"code": 400, "err_code": 10071, "description": "wrong last sequence"}}
NO_ROOM = {"error": {"code": 503, "err_code": 10023, "description": "insufficient resources"}}
BUSY = {"error": {"code": 503, "err_code": 10008, "description": "temporarily unavailable"}}
REFUSED = {"error": {"code": 400, "err_code": 10003, "description": "bad request"}}

Answer = Callable[[ScriptedBus, Published], None]


@asynccontextmanager
async def scripted(answer: Answer) -> AsyncIterator[tuple[ScriptedBus, JetStream]]:
    async with asyncio.timeout(10), ScriptedBus(answer) as server:
        connection = Connection(NatsSettings(server.url))
        await connection.open()
        try:
            yield server, JetStream(connection)
        finally:
            await connection.aclose()


def last_message(sequence: int, epoch: int, append_id: str) -> dict[str, object]:
    import base64

    headers = encode_headers({"Nni-Epoch": str(epoch), "Nni-Append": append_id})
    return {
        "message": {
            "subject": EVENT,
            "seq": sequence,
            "data": "",
            "hdrs": base64.b64encode(headers).decode(),
            "time": "2026-01-01T00:00:00.5Z",
        }
    }


async def append(jetstream: JetStream) -> int:
    return await NatsEventLog(jetstream).append(
        "e", b"x", expected_sequence=4, epoch=2, append_id="a"
    )


async def test_append_stored_before_the_connection_broke_is_recognised() -> None:
    def answer(server: ScriptedBus, message: Published) -> None:
        if message.subject == EVENT:
            server.disconnect()  # stored, but the answer is lost
        elif message.subject.startswith("$JS.API.STREAM.MSG.GET"):
            server.answer(message, last_message(5, 2, "a"))

    async with scripted(answer) as (server, jetstream):
        sequence = await append(jetstream)

        assert sequence == 5
        assert len(await server.seen(EVENT)) == 1


async def test_append_that_did_not_arrive_is_sent_again() -> None:
    tries = iter(["lose", "store"])

    def answer(server: ScriptedBus, message: Published) -> None:
        if message.subject == EVENT:
            if next(tries) == "lose":
                server.disconnect()
            else:
                server.answer(message, {"stream": "EXPERIMENTS", "seq": 9})
        elif message.subject.startswith("$JS.API.STREAM.MSG.GET"):
            server.answer(message, last_message(4, 2, "before"))

    async with scripted(answer) as (server, jetstream):
        assert await append(jetstream) == 9
        assert len(await server.seen(EVENT, 2)) == 2


async def test_append_stored_late_is_recognised_by_the_refusal_of_its_repetition() -> None:
    states = iter([last_message(4, 2, "before"), last_message(5, 2, "a")])
    tries = iter(["lose", "refuse"])

    def answer(server: ScriptedBus, message: Published) -> None:
        if message.subject == EVENT:
            if next(tries) == "lose":
                server.disconnect()
            else:
                server.answer(message, WRONG_SEQUENCE)
        else:
            server.answer(message, next(states))

    async with scripted(answer) as (_, jetstream):
        assert await append(jetstream) == 5


async def test_append_after_another_writer_loses_ownership() -> None:
    def answer(server: ScriptedBus, message: Published) -> None:
        if message.subject == EVENT:
            server.answer(message, WRONG_SEQUENCE)
        else:
            server.answer(message, last_message(7, 3, "other"))

    async with scripted(answer) as (_, jetstream):
        with pytest.raises(LostOwnershipError, match="message 7 of epoch 3, expected 4"):
            await append(jetstream)


async def test_append_names_what_it_expects() -> None:
    def answer(server: ScriptedBus, message: Published) -> None:
        server.answer(message, {"stream": "EXPERIMENTS", "seq": 5})

    async with scripted(answer) as (server, jetstream):
        await append(jetstream)

    (sent,) = await server.seen(EVENT)
    assert decode_headers(sent.headers) == {
        "Nats-Expected-Last-Subject-Sequence": "4",
        "Nni-Epoch": "2",
        "Nni-Append": "a",
    }


async def test_publish_is_repeated_with_its_message_id_until_it_is_acknowledged() -> None:
    tries = iter(["lose", "not yet", "busy", "store"])

    def answer(server: ScriptedBus, message: Published) -> None:
        match next(tries):
            case "lose":
                server.disconnect()
            case "not yet":
                server.deliver(message.reply, message.reply, headers=b"NATS/1.0 503\r\n\r\n")
            case "busy":
                server.answer(message, BUSY)
            case _:
                server.answer(message, {"stream": "INBOX", "seq": 3})

    async with scripted(answer) as (server, jetstream):
        sequence = await NatsInbox(jetstream).publish("e", "r", b"x", message_id="m1")

    sent = await server.seen("nni.inbox.e.r", 4)
    assert sequence == 3
    (message_id,) = {decode_headers(one.headers)["Nats-Msg-Id"] for one in sent}
    assert message_id.endswith(".m1")


@pytest.mark.parametrize(
    "ask",
    [
        lambda jetstream: jetstream.publish("nni.inbox.e.r", b"x"),
        lambda jetstream: jetstream.api("STREAM.INFO.X"),
    ],
    ids=["publish", "api"],
)
async def test_bus_that_is_unavailable_for_now_is_not_asked_again_at_once(
    ask: Callable[[JetStream], Coroutine[object, object, object]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nats_jetstream, "FIRST_RETRY_S", 3600.0)

    async with scripted(lambda server, message: server.answer(message, BUSY)) as (
        server,
        jetstream,
    ):
        asking = asyncio.create_task(ask(jetstream))
        await server.seen("")
        for _ in range(3):  # the answer has come, and a repetition would have been sent
            await jetstream.connection.flush()
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)

    assert len(server.published) == 1


async def test_bus_out_of_room_is_reported() -> None:
    async with scripted(lambda server, message: server.answer(message, NO_ROOM)) as (_, jetstream):
        with pytest.raises(OutOfRoomError, match="out of room: insufficient resources"):
            await jetstream.publish("nni.inbox.e.r", b"x")


async def test_refusal_carries_its_code() -> None:
    async with scripted(lambda server, message: server.answer(message, REFUSED)) as (_, jetstream):
        with pytest.raises(JetStreamError) as caught:
            await jetstream.api("STREAM.INFO.X")

    assert caught.value.code == 10003


def deliver(server: ScriptedBus, inbox: str, sequence: int, delivered: int) -> None:
    server.deliver(
        inbox, EVENT, f"$JS.ACK.EXPERIMENTS.c.1.{sequence}.{delivered}.0.0", payload=b"x"
    )


def follower(deliveries: list[list[tuple[int, int]]]) -> tuple[Answer, list[int]]:
    """Make an answer that gives each new consumer the next list of (sequence, delivered)."""
    starts: list[int] = []
    rest = iter(deliveries)

    def answer(server: ScriptedBus, message: Published) -> None:
        if not message.subject.startswith("$JS.API.CONSUMER.CREATE"):
            return
        config = json.loads(message.payload)["config"]
        starts.append(config["opt_start_seq"])
        server.answer(message, {"name": "c"})
        for sequence, delivered in next(rest, []):
            deliver(server, config["deliver_subject"], sequence, delivered)

    return answer, starts


async def take(jetstream: JetStream, count: int) -> list[int]:
    taken: list[int] = []
    messages = jetstream.follow("EXPERIMENTS", EVENT, 0)
    async for batch in messages:
        taken += [one.sequence for one in batch]
        if len(taken) >= count:
            break
    await messages.aclose()
    return taken


async def test_follower_with_a_gap_makes_its_consumer_again_behind_the_last_message() -> None:
    answer, starts = follower([[(1, 1), (2, 2), (9, 4)], [(5, 1), (9, 2)]])

    async with scripted(answer) as (_, jetstream):
        taken = await take(jetstream, 4)

    assert taken == [1, 2, 5, 9]
    assert starts == [1, 3]


async def test_follower_drops_messages_that_it_has_delivered() -> None:
    answer, _ = follower([[(1, 1), (2, 2), (2, 3), (3, 4)]])

    async with scripted(answer) as (_, jetstream):
        assert await take(jetstream, 3) == [1, 2, 3]


async def test_heartbeat_with_a_higher_count_makes_the_consumer_again() -> None:
    answer, starts = follower([[(1, 1)], [(2, 1)]])

    async with scripted(answer) as (server, jetstream):
        messages = jetstream.follow("EXPERIMENTS", EVENT, 0)
        await anext(messages)
        (created,) = await server.seen("$JS.API.CONSUMER.CREATE")
        inbox = json.loads(created.payload)["config"]["deliver_subject"]
        beat = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 2\r\n\r\n"
        server.deliver(inbox, inbox, headers=beat)

        (second,) = await anext(messages)
        await messages.aclose()

    assert second.sequence == 2
    assert starts == [1, 2]


async def test_request_of_flow_control_is_answered() -> None:
    answer, _ = follower([[(1, 1)]])

    async with scripted(answer) as (server, jetstream):
        messages = jetstream.follow("EXPERIMENTS", EVENT, 0)
        await anext(messages)
        (created,) = await server.seen("$JS.API.CONSUMER.CREATE")
        inbox = json.loads(created.payload)["config"]["deliver_subject"]
        server.deliver(
            inbox, inbox, "$JS.FC.x", headers=b"NATS/1.0 100 FlowControl Request\r\n\r\n"
        )

        assert await server.seen("$JS.FC.x")
        await messages.aclose()
