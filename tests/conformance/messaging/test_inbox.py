"""Contract of `Inbox`."""

import asyncio
from contextlib import aclosing

from svc_common.messaging.ports import Bus, InboxMessage
from tests.conformance.messaging.conftest import World


async def take(bus: Bus, exp: str, count: int, after: int = 0) -> list[InboxMessage]:
    taken: list[InboxMessage] = []
    async with aclosing(bus.inbox.follow(exp, after)) as batches:
        async for batch in batches:
            assert batch
            taken += batch
            if len(taken) >= count:
                break
    return taken


async def test_messages_of_all_sources_come_in_one_order(bus: Bus, exp: str) -> None:
    sequences = [
        await bus.inbox.publish(exp, source, source.encode(), message_id=f"{exp}/{n}")
        for n, source in enumerate(["runner-1", "host", "runner-1"])
    ]

    taken = await take(bus, exp, 3)

    assert [message.sequence for message in taken] == sequences
    assert [message.source for message in taken] == ["runner-1", "host", "runner-1"]
    assert [message.payload for message in taken] == [b"runner-1", b"host", b"runner-1"]


async def test_overlapping_publishes_keep_their_order(bus: Bus, exp: str) -> None:
    await asyncio.gather(
        *(bus.inbox.publish(exp, "r", str(n).encode(), message_id=f"{exp}/{n}") for n in range(200))
    )

    taken = await take(bus, exp, 200)

    assert [int(message.payload) for message in taken] == list(range(200))


async def test_same_message_id_is_stored_once(bus: Bus, exp: str) -> None:
    first = await bus.inbox.publish(exp, "r", b"x", message_id=f"{exp}/same")

    second = await bus.inbox.publish(exp, "r", b"x", message_id=f"{exp}/same")

    assert second == first
    assert await bus.inbox.last_sequence(exp) == first


async def test_reading_goes_on_behind_a_cursor(bus: Bus, exp: str) -> None:
    sequences = [
        await bus.inbox.publish(exp, "r", b"%d" % n, message_id=f"{exp}/{n}") for n in range(4)
    ]

    taken = await take(bus, exp, 2, after=sequences[1])

    assert [message.sequence for message in taken] == sequences[2:]


async def test_other_experiments_are_not_seen(bus: Bus, exp: str) -> None:
    await bus.inbox.publish(f"{exp}-other", "r", b"other", message_id=f"{exp}/o")
    await bus.inbox.publish(exp, "r", b"mine", message_id=f"{exp}/m")

    (message,) = await take(bus, exp, 1)

    assert message.payload == b"mine"


async def test_trimmed_messages_are_gone_and_later_ones_stay(bus: Bus, exp: str) -> None:
    sequences = [
        await bus.inbox.publish(exp, "r", b"%d" % n, message_id=f"{exp}/{n}") for n in range(4)
    ]
    await bus.inbox.publish(f"{exp}-other", "r", b"other", message_id=f"{exp}/o")

    await bus.inbox.trim(exp, sequences[1])

    assert [message.sequence for message in await take(bus, exp, 2)] == sequences[2:]
    assert await bus.inbox.last_sequence(f"{exp}-other") > 0


async def test_deleted_inbox_is_empty(bus: Bus, exp: str) -> None:
    await bus.inbox.publish(exp, "r", b"x", message_id=f"{exp}/1")

    await bus.inbox.delete(exp)

    assert await bus.inbox.last_sequence(exp) == 0


async def test_outage_neither_loses_nor_repeats_messages(fragile_world: World) -> None:
    count = 200
    async with (
        asyncio.timeout(30),
        fragile_world.open_bus() as sender,
        fragile_world.open_bus() as reader,
    ):
        taken: list[InboxMessage] = []
        half = asyncio.Event()

        async def read() -> None:
            async with aclosing(reader.inbox.follow("e")) as batches:
                async for batch in batches:
                    taken.extend(batch)
                    if len(taken) >= count // 2:
                        half.set()
                    if len(taken) >= count:
                        return

        async def send() -> None:
            for n in range(count):
                await sender.inbox.publish("e", "r", b"%d" % n, message_id=str(n))

        async with asyncio.TaskGroup() as group:
            group.create_task(read())
            group.create_task(send())
            await half.wait()
            fragile_world.outage.kill()
            await reader.wait_connected(False)
            fragile_world.outage.start()

    assert [int(message.payload) for message in taken] == list(range(count))


async def test_lifted_inbox_numbers_above_the_cursor_and_keeps_its_messages(bus: Bus) -> None:
    earlier = [
        await bus.inbox.publish("lift1", "r", b"%d" % n, message_id=f"lift1/{n}") for n in range(3)
    ]
    other = await bus.inbox.publish("lift2", "host", b"other", message_id="lift2/0")
    cursor = other + 500

    moved = await bus.inbox.lift(cursor)

    assert moved is not None
    assert moved >= 4  # the server may be shared
    later = await bus.inbox.publish("lift1", "r", b"3", message_id="lift1/3")
    taken = await take(bus, "lift1", 4, after=cursor)
    assert [message.payload for message in taken] == [b"0", b"1", b"2", b"3"]
    assert all(message.sequence > cursor for message in taken)
    assert taken[-1].sequence == later
    assert [m.source for m in await take(bus, "lift2", 1, after=cursor)] == ["host"]
    assert await take(bus, "lift1", 4) == taken
    assert earlier[-1] < cursor


async def test_inbox_that_continues_the_cursor_is_not_changed(bus: Bus, exp: str) -> None:
    last = await bus.inbox.publish(exp, "r", b"x", message_id=f"{exp}/0")

    assert await bus.inbox.lift(last) is None

    assert await bus.inbox.last_sequence(exp) == last


async def test_empty_inbox_is_lifted(fragile_world: World) -> None:
    async with asyncio.timeout(20), fragile_world.open_bus() as bus:
        assert await bus.inbox.lift(70) == 0

        assert await bus.inbox.publish("e", "r", b"x", message_id="first") == 71


async def test_followers_go_on_across_a_lift(bus: Bus, exp: str) -> None:
    first = await bus.inbox.publish(exp, "r", b"a", message_id=f"{exp}/a")
    taken: list[InboxMessage] = []
    async with aclosing(bus.inbox.follow(exp, first)) as batches:
        reading = asyncio.ensure_future(anext(batches))
        await bus.inbox.publish(exp, "r", b"b", message_id=f"{exp}/b")
        taken += await reading

        await bus.inbox.lift(taken[-1].sequence + 100)
        await bus.inbox.publish(exp, "r", b"c", message_id=f"{exp}/c")
        while taken[-1].payload != b"c":
            taken += await anext(batches)

    assert [message.payload for message in taken][-1] == b"c"
