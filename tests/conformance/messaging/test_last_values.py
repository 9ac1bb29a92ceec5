"""Contract of `LastValues`."""

import asyncio
from contextlib import aclosing

import pytest

from svc_common import subjects
from svc_common.errors import AbortedError, InvalidArgumentError, ResourceExhaustedError
from svc_common.messaging.ports import Bus, LastValue
from tests.conformance.messaging.conftest import World


@pytest.fixture
def need(world: World) -> str:
    return subjects.pool_need_subject(f"pool-{world.id}")


@pytest.fixture
def state(world: World) -> str:
    return subjects.pool_state_subject(f"pool-{world.id}")


async def test_reader_gets_the_last_value_and_none_before_it(bus: Bus, need: str) -> None:
    for number in range(3):
        await bus.last_values.publish(need, b"%d" % number)

    async with aclosing(bus.last_values.follow(need)) as followed:
        assert await anext(followed) == LastValue(need, b"2")


async def test_reader_gets_each_value_that_comes_later(bus: Bus, need: str) -> None:
    async with aclosing(bus.last_values.follow(need)) as followed:
        seen = []
        for number in range(5):
            await bus.last_values.publish(need, b"%d" % number)
            seen.append((await anext(followed)).payload)

    assert seen == [b"0", b"1", b"2", b"3", b"4"]


async def test_value_is_replaced_only_if_it_is_the_expected_one(bus: Bus, need: str) -> None:
    await bus.last_values.publish(need, b"0", expected_sequence=0)
    (first,) = await bus.last_values.read(need)
    await bus.last_values.publish(need, b"1", expected_sequence=first.sequence)

    for outdated in (0, first.sequence):
        with pytest.raises(AbortedError, match="changed by another"):
            await bus.last_values.publish(need, b"2", expected_sequence=outdated)

    assert await bus.last_values.read(need) == [LastValue(need, b"1")]


async def test_deleted_value_can_be_expected_to_be_absent(bus: Bus, need: str) -> None:
    await bus.last_values.publish(need, b"0")
    await bus.last_values.delete(need)

    await bus.last_values.publish(need, b"1", expected_sequence=0)

    assert await bus.last_values.read(need) == [LastValue(need, b"1")]


async def test_deletion_of_a_value_spares_a_later_one(bus: Bus, need: str) -> None:
    await bus.last_values.publish(need, b"0")
    (first,) = await bus.last_values.read(need)
    await bus.last_values.publish(need, b"1")

    await bus.last_values.delete(need, through_sequence=first.sequence)
    (second,) = await bus.last_values.read(need)
    await bus.last_values.delete(need, through_sequence=second.sequence)

    assert (second.payload, await bus.last_values.read(need)) == (b"1", [])


async def test_values_of_one_subject_come_in_order_up_to_the_last(bus: Bus, need: str) -> None:
    await bus.last_values.publish(need, b"0")
    async with aclosing(bus.last_values.follow(need)) as followed:
        seen = [int((await anext(followed)).payload)]
        for number in range(1, 50):
            await bus.last_values.publish(need, b"%d" % number)
        while seen[-1] != 49:
            seen.append(int((await anext(followed)).payload))

    assert seen == sorted(set(seen))


async def test_needs_are_read_without_states(bus: Bus, world: World, need: str, state: str) -> None:
    other = subjects.pool_need_subject(f"pool-{world.id}-other")
    await bus.last_values.publish(need, b"a")
    await bus.last_values.publish(state, b"b")
    await bus.last_values.publish(other, b"c")

    found: dict[str, bytes] = {}
    async with aclosing(bus.last_values.follow(subjects.ALL_POOL_NEEDS)) as followed:
        while not {need, other} <= found.keys():
            value = await anext(followed)
            found[value.subject] = value.payload
        await bus.last_values.publish(state, b"d")
        await bus.last_values.publish(need, b"e")
        while found[need] != b"e":
            value = await anext(followed)
            found[value.subject] = value.payload

    assert all(subject.endswith(".need") for subject in found)
    assert (found[need], found[other]) == (b"e", b"c")


async def test_needs_and_states_can_be_read_together(bus: Bus, need: str, state: str) -> None:
    await bus.last_values.publish(need, b"a")
    await bus.last_values.publish(state, b"b")

    found: dict[str, bytes] = {}
    async with aclosing(bus.last_values.follow(subjects.ALL_POOLS)) as followed:
        while not {need, state} <= found.keys():
            value = await anext(followed)
            found[value.subject] = value.payload

    assert (found[need], found[state]) == (b"a", b"b")


async def test_deleted_value_is_gone_and_another_one_may_follow(bus: Bus, need: str) -> None:
    await bus.last_values.publish(need, b"old")
    async with aclosing(bus.last_values.follow(need)) as present:
        assert (await anext(present)).payload == b"old"

        await bus.last_values.delete(need)
        await bus.last_values.delete(need)
        await bus.last_values.publish(need, b"new")

        assert (await anext(present)).payload == b"new"
    async with aclosing(bus.last_values.follow(need)) as later:
        assert (await anext(later)).payload == b"new"


async def test_reader_of_a_subject_without_value_waits_for_one(bus: Bus, need: str) -> None:
    async with aclosing(bus.last_values.follow(need)) as followed:
        waiting = asyncio.ensure_future(anext(followed))
        await asyncio.sleep(0)
        await bus.last_values.publish(need, b"first")

        assert (await waiting).payload == b"first"


async def test_last_value_outlives_a_killed_bus_and_is_not_repeated(fragile_world: World) -> None:
    need = subjects.pool_need_subject("p")
    async with (
        asyncio.timeout(20),
        fragile_world.open_bus() as bus,
        aclosing(bus.last_values.follow(need)) as present,
    ):
        await bus.last_values.publish(need, b"before")
        assert (await anext(present)).payload == b"before"
        fragile_world.outage.kill()
        await bus.wait_connected(False)
        fragile_world.outage.start()
        async with aclosing(bus.last_values.follow(need)) as later:
            assert (await anext(later)).payload == b"before"

        await bus.last_values.publish(need, b"after")

        assert (await anext(present)).payload == b"after"


async def test_reader_that_was_away_gets_the_last_value(fragile_world: World) -> None:
    need = subjects.pool_need_subject("p")
    async with (
        asyncio.timeout(20),
        fragile_world.open_bus() as writer,
        fragile_world.open_bus() as reader,
        aclosing(reader.last_values.follow(need)) as followed,
    ):
        await writer.last_values.publish(need, b"0")
        assert (await anext(followed)).payload == b"0"
        fragile_world.outage.kill()
        await writer.wait_connected(False)
        waiting = asyncio.ensure_future(writer.last_values.publish(need, b"1"))
        await asyncio.sleep(0)
        fragile_world.outage.start()
        await waiting
        await writer.last_values.publish(need, b"2")

        seen = [(await anext(followed)).payload]
        while seen[-1] != b"2":
            seen.append((await anext(followed)).payload)

        assert seen in ([b"1", b"2"], [b"2"])


async def test_reader_ends_when_the_bus_is_closed(world: World, need: str) -> None:
    bus = world.open_bus()
    async with asyncio.timeout(10), bus:
        followed = bus.last_values.follow(need)
        waiting = asyncio.create_task(anext(followed, None))
        await asyncio.sleep(0)

        await bus.aclose()

        assert await waiting is None


async def test_value_larger_than_the_bus_allows_is_refused(bus: Bus, need: str) -> None:
    with pytest.raises(ResourceExhaustedError):
        await bus.last_values.publish(need, bytes(8 * 1024 * 1024 + 128 * 1024))


@pytest.mark.parametrize("foreign", ["nni.pool.p", "nni.pool.*.need", "nni.task.p", "nni.pool.p.x"])
async def test_subject_that_is_none_of_a_pool_is_refused(bus: Bus, foreign: str) -> None:
    with pytest.raises(InvalidArgumentError):
        await bus.last_values.publish(foreign, b"x")
    with pytest.raises(InvalidArgumentError):
        await bus.last_values.delete(foreign)


@pytest.mark.parametrize("foreign", [">", "nni.pool.>", "nni.pool.a b.need", "nni.log.*.*"])
async def test_pattern_that_is_none_of_pools_is_refused(bus: Bus, foreign: str) -> None:
    async with aclosing(bus.last_values.follow(foreign)) as followed:
        with pytest.raises(InvalidArgumentError):
            await anext(followed)


async def test_present_values_are_read_at_once(bus: Bus, need: str, state: str) -> None:
    assert await bus.last_values.read(state) == []
    for payload in (b"a", b"b"):
        await bus.last_values.publish(state, payload)
    await bus.last_values.publish(need, b"c")

    assert await bus.last_values.read(state) == [LastValue(state, b"b")]
