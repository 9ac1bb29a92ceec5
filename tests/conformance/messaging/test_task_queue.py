"""Contract of `TaskQueue`."""

import asyncio
from contextlib import aclosing

import pytest

from svc_common.errors import InvalidArgumentError
from svc_common.messaging.ports import Bus, Task
from tests.conformance.messaging.conftest import World

PATIENCE_S = 0.05
"""Long enough for a task that should not come to come, on a loaded machine most of the time; a
task that comes later makes no test fail that should pass."""


@pytest.fixture
def pool(world: World) -> str:
    return f"pool-{world.id}"


async def publish(bus: Bus, pool: str, *names: str) -> list[int]:
    return [
        await bus.tasks.publish(pool, name.encode(), message_id=f"{pool}/{name}") for name in names
    ]


async def test_pool_may_be_opened_often_and_before_anything_is_published(
    bus: Bus, pool: str
) -> None:
    await bus.tasks.open_pool(pool)
    await bus.tasks.open_pool(pool)

    async with aclosing(await bus.tasks.pull(pool)) as feed:
        feed.grant(1)
        await publish(bus, pool, "a")

        assert (await anext(feed)).payload == b"a"
    with pytest.raises(InvalidArgumentError, match="pool"):
        await bus.tasks.open_pool("no.pool")


async def test_closed_pool_has_no_tasks_and_may_be_opened_again(bus: Bus, pool: str) -> None:
    await publish(bus, pool, "a")
    await bus.tasks.publish(pool, b"first", message_id=f"{pool}/first", ahead=True)

    await bus.tasks.close_pool(pool)
    await bus.tasks.close_pool(pool)

    await publish(bus, pool, "b")
    async with aclosing(await bus.tasks.pull(pool)) as feed:
        feed.grant(1)
        assert (await anext(feed)).payload == b"b"


async def test_nothing_is_delivered_before_a_grant(bus: Bus, pool: str) -> None:
    await publish(bus, pool, "a")
    async with aclosing(await bus.tasks.pull(pool)) as feed:
        waiting = asyncio.ensure_future(anext(feed))
        await asyncio.wait({waiting}, timeout=PATIENCE_S)
        assert not waiting.done()

        feed.grant(1)

        assert (await waiting).payload == b"a"


async def test_as_many_are_delivered_as_granted(bus: Bus, pool: str) -> None:
    await publish(bus, pool, "a", "b", "c")
    async with aclosing(await bus.tasks.pull(pool)) as feed:
        feed.grant(2)
        taken = [await anext(feed), await anext(feed)]
        waiting = asyncio.ensure_future(anext(feed))
        await asyncio.wait({waiting}, timeout=PATIENCE_S)
        assert not waiting.done()
        assert feed.granted == 0

        feed.grant(1)
        taken.append(await waiting)

    assert [task.payload for task in taken] == [b"a", b"b", b"c"]


async def test_task_ahead_comes_before_older_ones(bus: Bus, pool: str) -> None:
    await publish(bus, pool, "a", "b")
    await bus.tasks.publish(pool, b"first", message_id=f"{pool}/first", ahead=True)
    await bus.tasks.publish(pool, b"second", message_id=f"{pool}/second", ahead=True)

    async with aclosing(await bus.tasks.pull(pool)) as feed:
        taken = []
        for _ in range(4):
            feed.grant(1)
            taken.append((await anext(feed)).payload)

    assert taken == [b"first", b"second", b"a", b"b"]


async def test_task_ahead_reaches_a_standing_grant(bus: Bus, pool: str) -> None:
    async with aclosing(await bus.tasks.pull(pool)) as feed:
        feed.grant(2)
        await bus.tasks.publish(pool, b"first", message_id=f"{pool}/first", ahead=True)
        first = await anext(feed)
        await publish(bus, pool, "a")
        second = await anext(feed)

        assert (first.payload, second.payload, feed.granted) == (b"first", b"a", 0)


async def test_tasks_of_both_kinds_together_are_not_more_than_granted(bus: Bus, pool: str) -> None:
    async with aclosing(await bus.tasks.pull(pool)) as feed:
        feed.grant(1)
        await publish(bus, pool, "a")
        await anext(feed)
        await bus.tasks.publish(pool, b"first", message_id=f"{pool}/first", ahead=True)
        waiting = asyncio.ensure_future(anext(feed))
        await asyncio.wait({waiting}, timeout=PATIENCE_S)
        assert not waiting.done()

        feed.grant(1)

        assert (await waiting).payload == b"first"


async def test_task_published_later_reaches_a_standing_grant(bus: Bus, pool: str) -> None:
    async with aclosing(await bus.tasks.pull(pool)) as feed:
        feed.grant(3)
        (sequence,) = await publish(bus, pool, "late")

        task = await anext(feed)

    assert (task.pool, task.sequence, task.payload) == (pool, sequence, b"late")
    assert task.deliveries == 1


async def test_each_task_goes_to_one_of_several_agents(world: World, pool: str) -> None:
    async with (
        asyncio.timeout(20),
        world.open_bus() as one,
        world.open_bus() as two,
        aclosing(await one.tasks.pull(pool)) as first,
        aclosing(await two.tasks.pull(pool)) as second,
    ):
        first.grant(2)
        second.grant(2)
        await publish(one, pool, "a", "b", "c", "d")

        taken = [await anext(first), await anext(first), await anext(second), await anext(second)]

    assert sorted(task.payload for task in taken) == [b"a", b"b", b"c", b"d"]


async def test_task_given_back_comes_again(bus: Bus, pool: str) -> None:
    await publish(bus, pool, "a")
    async with aclosing(await bus.tasks.pull(pool)) as feed:
        feed.grant(2)
        first = await anext(feed)

        await bus.tasks.nak(first.ack_subject)
        second = await anext(feed)

    assert second.sequence == first.sequence
    assert second.deliveries == 2


async def test_unread_tasks_of_a_closed_feed_go_to_others(bus: Bus, pool: str) -> None:
    await publish(bus, pool, "a", "b")
    closed = await bus.tasks.pull(pool)
    closed.grant(2)
    first = await anext(closed)
    await closed.aclose()

    async with aclosing(await bus.tasks.pull(pool)) as feed:
        feed.grant(2)
        second = await anext(feed)

    assert {first.payload, second.payload} == {b"a", b"b"}


async def test_finished_deleted_and_terminated_tasks_never_come_again(bus: Bus, pool: str) -> None:
    await publish(bus, pool, "acked", "terminated", "deleted", "other")
    async with aclosing(await bus.tasks.pull(pool)) as feed:
        feed.grant(3)
        acked, terminated, deleted = [await anext(feed) for _ in range(3)]
        await bus.tasks.ack(acked.ack_subject)
        await bus.tasks.term(terminated.ack_subject)
        await bus.tasks.delete(deleted.sequence)
        await bus.tasks.nak(acked.ack_subject)
        await bus.tasks.nak(terminated.ack_subject)
        await bus.tasks.nak(deleted.ack_subject)

        feed.grant(1)
        task = await anext(feed)

    assert task.payload == b"other"


async def test_task_deleted_before_delivery_is_not_delivered(bus: Bus, pool: str) -> None:
    first, _ = await publish(bus, pool, "a", "b")

    await bus.tasks.delete(first)
    await bus.tasks.delete(first)

    async with aclosing(await bus.tasks.pull(pool)) as feed:
        feed.grant(1)
        assert (await anext(feed)).payload == b"b"


async def test_task_can_be_finished_by_another_connection(world: World, pool: str) -> None:
    async with asyncio.timeout(20), world.open_bus() as bus:
        await publish(bus, pool, "a", "b")
        async with aclosing(await bus.tasks.pull(pool)) as feed:
            feed.grant(1)
            task = await anext(feed)

        async with world.open_bus() as restarted:
            await restarted.tasks.in_progress(task.ack_subject)
            await restarted.tasks.ack(task.ack_subject)
            await restarted.tasks.nak(task.ack_subject)
            async with aclosing(await restarted.tasks.pull(pool)) as feed:
                feed.grant(1)
                following = await anext(feed)

    assert following.payload == b"b"


async def test_grants_are_valid_after_an_outage(fragile_world: World) -> None:
    async with (
        asyncio.timeout(20),
        fragile_world.open_bus() as bus,
        aclosing(await bus.tasks.pull("p")) as feed,
    ):
        feed.grant(2)
        await publish(bus, "p", "before")
        before = await anext(feed)
        await bus.tasks.ack(before.ack_subject)
        fragile_world.outage.kill()
        await bus.wait_connected(False)
        fragile_world.outage.start()

        await publish(bus, "p", "after")
        after: Task = await anext(feed)

    assert (before.payload, after.payload) == (b"before", b"after")


async def test_closed_feed_ends_its_reader(bus: Bus, pool: str) -> None:
    feed = await bus.tasks.pull(pool)
    waiting = asyncio.ensure_future(anext(feed, None))
    await asyncio.sleep(0)

    await feed.aclose()
    await feed.aclose()

    assert await waiting is None
