"""Contract of `Signals` and `LogLines`."""

import asyncio
from contextlib import aclosing

import pytest

from svc_common import subjects
from svc_common.errors import UnavailableError
from svc_common.messaging.limits import LOG_LINES_PER_TRIAL
from svc_common.messaging.ports import Bus
from tests.conformance.messaging.conftest import World


async def test_signal_reaches_all_subscribers(world: World, bus: Bus) -> None:
    subject = subjects.control_subject(f"runner-{world.id}")
    async with (
        aclosing(await bus.signals.subscribe(subject)) as one,
        aclosing(await bus.signals.subscribe(subject)) as two,
    ):
        assert bus.signals.publish(subject, b"stop")

        assert [(await anext(one)).payload, (await anext(two)).payload] == [b"stop", b"stop"]


async def test_signal_of_a_pattern_carries_its_own_subject(world: World, bus: Bus) -> None:
    async with aclosing(await bus.signals.subscribe(subjects.ALL_PRESENCES)) as listened:
        bus.signals.publish(subjects.presence_subject(f"r-{world.id}"), b"here")

        signal = await anext(listened)

    assert subjects.runner_of_presence(signal.subject) == f"r-{world.id}"


async def test_request_is_answered(world: World, bus: Bus) -> None:
    subject = subjects.control_subject(f"runner-{world.id}")
    async with aclosing(await bus.signals.subscribe(subject)) as listened:
        asking = asyncio.ensure_future(bus.signals.request(subject, b"ready?", 5.0))
        signal = await anext(listened)

        assert bus.signals.reply(signal, b"yes")

        assert (signal.payload, await asking) == (b"ready?", b"yes")


async def test_request_without_subscriber_is_refused(world: World, bus: Bus) -> None:
    with pytest.raises(UnavailableError):
        await bus.signals.request(subjects.control_subject(f"none-{world.id}"), b"?", 5.0)


async def test_signals_are_dropped_while_the_bus_is_away(fragile_world: World) -> None:
    async with asyncio.timeout(20), fragile_world.open_bus() as bus:
        subject = subjects.live_subject("e")
        async with aclosing(await bus.signals.subscribe(subject)) as listened:
            fragile_world.outage.kill()
            await bus.wait_connected(False)
            dropped = bus.signals.publish(subject, b"lost")
            fragile_world.outage.start()
            await bus.wait_connected()
            bus.signals.publish(subject, b"seen")

            signal = await anext(listened)

    assert (dropped, signal.payload) == (False, b"seen")


async def test_log_lines_are_stored_and_followed(bus: Bus, exp: str) -> None:
    bus.log_lines.publish(exp, "t1", b"old")
    bus.log_lines.publish(exp, "t2", b"other trial")
    async with aclosing(bus.log_lines.follow(exp, "t1")) as followed:
        old = await anext(followed)
        bus.log_lines.publish(exp, "t1", b"new")
        new = await anext(followed)

    assert [(old.trial_id, old.payload), (new.trial_id, new.payload)] == [
        ("t1", b"old"),
        ("t1", b"new"),
    ]
    assert new.sequence > old.sequence


async def test_deleted_log_lines_are_gone(bus: Bus, exp: str) -> None:
    bus.log_lines.publish(exp, "t1", b"old")
    async with aclosing(bus.log_lines.follow(exp, "t1")) as followed:
        await anext(followed)  # it has arrived

    await bus.log_lines.delete(exp)

    bus.log_lines.publish(exp, "t1", b"new")
    async with aclosing(bus.log_lines.follow(exp, "t1")) as followed:
        assert (await anext(followed)).payload == b"new"


async def test_sequence_of_the_last_stored_output_is_returned(bus: Bus, exp: str) -> None:
    assert await bus.log_lines.last_sequence(exp, "t1") == 0
    bus.log_lines.publish(exp, "t1", b"one")
    bus.log_lines.publish(exp, "t1", b"two")
    async with aclosing(bus.log_lines.follow(exp, "t1")) as followed:
        await anext(followed)
        second = await anext(followed)

    assert await bus.log_lines.last_sequence(exp, "t1") == second.sequence


async def test_only_the_latest_output_of_a_trial_is_stored(bus: Bus, exp: str) -> None:
    bus.log_lines.publish(exp, "quiet", b"still here")
    for number in range(LOG_LINES_PER_TRIAL + 5):
        bus.log_lines.publish(exp, "loud", str(number).encode())
    async with aclosing(bus.log_lines.follow(exp, "loud")) as followed:
        async for chunk in followed:
            if chunk.payload == str(LOG_LINES_PER_TRIAL + 4).encode():
                break
    async with (
        aclosing(bus.log_lines.follow(exp, "loud")) as loud,
        aclosing(bus.log_lines.follow(exp, "quiet")) as quiet,
    ):
        oldest = await anext(loud)

        assert (oldest.payload, (await anext(quiet)).payload) == (b"5", b"still here")


async def test_no_stream_is_missing_at_first(bus: Bus) -> None:
    assert await bus.missing_streams() == []


async def test_state_of_streams_counts_their_messages(bus: Bus, exp: str) -> None:
    await bus.inbox.publish(exp, "r1", b"report", message_id=f"{exp}-1")

    facts = {stream.name: stream for stream in await bus.streams()}

    assert list(facts) == ["EXPERIMENTS", "INBOX", "TASKS", "LOGS", "POOLS"]
    assert facts["INBOX"].messages >= 1
    assert facts["INBOX"].size_bytes > 0
    assert (facts["INBOX"].replicas, facts["INBOX"].replicas_missing) == (1, 0)
