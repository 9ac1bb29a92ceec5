"""Contract of `EventLog`."""

import asyncio
from contextlib import aclosing

import pytest

from svc_common.errors import (
    InvalidArgumentError,
    LostOwnershipError,
    ResourceExhaustedError,
    UnavailableError,
)
from svc_common.messaging.ports import Bus
from tests.conformance.messaging.conftest import World


async def append_many(
    bus: Bus, exp: str, count: int, *, start: int = 0, after: int = 0
) -> list[int]:
    sequences = []
    for number in range(start, start + count):
        after = await bus.events.append(
            exp, f"event {number}".encode(), expected_sequence=after, epoch=1, append_id=str(number)
        )
        sequences.append(after)
    return sequences


async def test_appends_are_read_back_in_order(bus: Bus, exp: str) -> None:
    sequences = await append_many(bus, exp, 5)

    messages = [message async for message in bus.events.read(exp)]

    assert [message.sequence for message in messages] == sequences
    assert [message.payload for message in messages] == [b"event %d" % n for n in range(5)]
    assert {(message.experiment_id, message.epoch) for message in messages} == {(exp, 1)}
    assert [message.append_id for message in messages] == ["0", "1", "2", "3", "4"]


async def test_sequences_grow_but_need_not_be_contiguous(bus: Bus, exp: str) -> None:
    first = await append_many(bus, exp, 1)
    await append_many(bus, f"{exp}-other", 2)

    second = await append_many(bus, exp, 1, start=1, after=first[0])

    assert second[0] == first[0] + 3


async def test_last_of_an_empty_log_is_none(bus: Bus, exp: str) -> None:
    assert await bus.events.last(exp) is None
    assert [message async for message in bus.events.read(exp)] == []


async def test_messages_of_a_log_are_counted_without_those_of_others(bus: Bus, exp: str) -> None:
    before = await bus.events.count(exp)
    await append_many(bus, exp, 5)
    await append_many(bus, f"{exp}-other", 2)

    assert (before, await bus.events.count(exp)) == (0, 5)


async def test_read_starts_behind_a_sequence(bus: Bus, exp: str) -> None:
    sequences = await append_many(bus, exp, 4)

    messages = [message async for message in bus.events.read(exp, sequences[1])]

    assert [message.sequence for message in messages] == sequences[2:]


async def test_append_behind_a_foreign_message_loses_ownership(bus: Bus, exp: str) -> None:
    (sequence,) = await append_many(bus, exp, 1)
    newer = await bus.events.append(
        exp, b"newer", expected_sequence=sequence, epoch=2, append_id="0"
    )

    with pytest.raises(LostOwnershipError) as caught:
        await bus.events.append(exp, b"late", expected_sequence=sequence, epoch=1, append_id="1")

    assert (caught.value.found_sequence, caught.value.found_epoch) == (newer, 2)
    last = await bus.events.last(exp)
    assert last is not None
    assert last.payload == b"newer"


async def test_append_to_a_log_that_is_not_empty_as_expected_is_refused(bus: Bus, exp: str) -> None:
    await append_many(bus, exp, 1)

    with pytest.raises(LostOwnershipError):
        await bus.events.append(exp, b"x", expected_sequence=0, epoch=9, append_id="9")


async def test_append_whose_answer_was_lost_is_recognised(bus: Bus, exp: str) -> None:
    async def append() -> int:
        return await bus.events.append(exp, b"x", expected_sequence=0, epoch=3, append_id="a")

    first = await append()
    second = await append()

    assert second == first
    assert len([message async for message in bus.events.read(exp)]) == 1


async def test_follow_gives_old_messages_then_new_ones(bus: Bus, exp: str) -> None:
    sequences = await append_many(bus, exp, 2)
    async with aclosing(bus.events.follow(exp)) as followed:
        seen = [(await anext(followed)).sequence for _ in range(2)]

        sequences += await append_many(bus, exp, 2, start=2, after=sequences[-1])
        seen += [(await anext(followed)).sequence for _ in range(2)]

    assert seen == sequences


async def test_follow_all_gives_every_log_in_order(bus: Bus, exp: str) -> None:
    async with aclosing(bus.events.follow_all(0)) as followed:
        mine = [f"{exp}-a", f"{exp}-b"]
        sequences = []
        for name in mine:
            sequences += await append_many(bus, name, 2)

        seen = []
        async for message in followed:
            if message.experiment_id in mine:
                seen.append(message.sequence)
            if len(seen) == 4:
                break

    assert seen == sequences


async def test_follow_continues_after_an_outage_without_loss_or_duplicate(
    fragile_world: World,
) -> None:
    async with asyncio.timeout(20), fragile_world.open_bus() as bus:
        sequences = await append_many(bus, "e", 3)
        async with aclosing(bus.events.follow("e")) as followed:
            seen = [(await anext(followed)).sequence for _ in range(2)]
            fragile_world.outage.kill()
            await bus.wait_connected(False)
            fragile_world.outage.start()
            sequences += await append_many(bus, "e", 3, start=3, after=sequences[-1])
            seen += [(await anext(followed)).sequence for _ in range(4)]

    assert seen == sequences


async def test_append_waits_for_the_bus_to_come_back(fragile_world: World) -> None:
    async with asyncio.timeout(20), fragile_world.open_bus() as bus:
        (first,) = await append_many(bus, "e", 1)
        fragile_world.outage.kill()
        await bus.wait_connected(False)
        waiting = asyncio.create_task(append_many(bus, "e", 1, start=1, after=first))
        await asyncio.sleep(0)
        fragile_world.outage.start()

        (second,) = await waiting

        assert [message.sequence async for message in bus.events.read("e")] == [first, second]


async def test_appends_while_the_bus_is_killed_are_stored_once(fragile_world: World) -> None:
    count = 300
    async with asyncio.timeout(30), fragile_world.open_bus() as bus:
        appending = asyncio.create_task(append_many(bus, "e", count))
        async with aclosing(bus.events.follow("e")) as followed:
            seen = [await anext(followed) for _ in range(50)]
            fragile_world.outage.kill()
            await bus.wait_connected(False)
            fragile_world.outage.start()
            sequences = await appending
            seen += [await anext(followed) for _ in range(count - 50)]

        stored = [message async for message in bus.events.read("e")]

    assert [message.append_id for message in stored] == [str(n) for n in range(count)]
    assert [message.sequence for message in stored] == sequences
    assert [message.sequence for message in seen] == sequences


async def test_experiments_are_those_that_have_a_log(bus: Bus, exp: str) -> None:
    await append_many(bus, f"{exp}-b", 1)
    await append_many(bus, f"{exp}-a", 1)

    listed = await bus.events.experiments()

    assert [name for name in listed if name.startswith(exp)] == [f"{exp}-a", f"{exp}-b"]


async def test_deleted_log_can_begin_anew(bus: Bus, exp: str) -> None:
    await append_many(bus, exp, 3)

    await bus.events.delete(exp)
    await bus.events.delete(exp)

    assert exp not in await bus.events.experiments()
    assert len(await append_many(bus, exp, 1, start=7)) == 1


async def test_payload_of_eight_megabytes_passes_and_a_larger_one_is_refused(
    bus: Bus, exp: str
) -> None:
    limit = 8 * 1024 * 1024
    payload = bytes(limit)

    sequence = await bus.events.append(
        exp, payload, expected_sequence=0, epoch=1, append_id="large"
    )

    (message,) = [message async for message in bus.events.read(exp)]
    assert message.payload == payload
    with pytest.raises(ResourceExhaustedError):
        await bus.events.append(
            exp, bytes(limit + 128 * 1024), expected_sequence=sequence, epoch=1, append_id="huge"
        )


async def test_id_that_is_no_token_is_refused(bus: Bus) -> None:
    with pytest.raises(InvalidArgumentError, match="experiment_id must be"):
        await bus.events.append("a.b", b"x", expected_sequence=0, epoch=1, append_id="1")


async def test_followers_end_when_the_bus_is_closed(world: World, exp: str) -> None:
    bus = world.open_bus()
    async with asyncio.timeout(10), bus:
        followed = bus.events.follow(exp)
        waiting = asyncio.create_task(anext(followed, None))
        await asyncio.sleep(0)

        await bus.aclose()

        assert await waiting is None


async def test_calls_that_wait_for_the_bus_end_with_the_close(fragile_world: World) -> None:
    async with asyncio.timeout(20), fragile_world.open_bus() as bus:
        fragile_world.outage.kill()
        await bus.wait_connected(False)
        waiting = [
            asyncio.ensure_future(bus.inbox.publish("e", "r", b"x", message_id="1")),
            asyncio.ensure_future(bus.events.last("e")),
            asyncio.ensure_future(bus.tasks.ack("$JS.ACK.TASKS.pool-p.1.1.1.1.0")),
            asyncio.ensure_future(bus.wait_connected()),
        ]
        await asyncio.sleep(0)

        await bus.aclose()
        results = await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(result) for result in results] == [UnavailableError] * 4
