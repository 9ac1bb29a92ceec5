import asyncio
from datetime import UTC, timedelta

from svc_common.clock import ManualClock, SystemClock


async def test_sleepers_wake_in_the_order_of_their_times() -> None:
    clock = ManualClock()
    woken: list[str] = []

    async def sleeper(name: str, duration_s: float) -> None:
        await clock.sleep(duration_s)
        woken.append(name)

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper("late", 10.0))
        group.create_task(sleeper("early", 5.0))
        await asyncio.sleep(0)
        assert clock.sleepers == 2

        clock.advance(10.0)

    assert woken == ["early", "late"]


async def test_sleeper_before_its_time_sleeps_on() -> None:
    clock = ManualClock()
    sleeping = asyncio.ensure_future(clock.sleep(5.0))
    await asyncio.sleep(0)

    clock.advance(4.9)
    await asyncio.sleep(0)
    assert not sleeping.done()
    clock.advance(0.1)

    await sleeping


async def test_time_of_day_follows_advance() -> None:
    clock = ManualClock()
    start = clock.now()

    clock.advance(90.0)

    assert clock.now() - start == timedelta(seconds=90)
    assert clock.monotonic_s() == 90.0


async def test_cancelled_sleeper_is_not_counted() -> None:
    clock = ManualClock()
    sleeping = asyncio.ensure_future(clock.sleep(5.0))
    await asyncio.sleep(0)

    sleeping.cancel()
    await asyncio.gather(sleeping, return_exceptions=True)
    clock.advance(10.0)

    assert clock.sleepers == 0


async def test_system_clock_is_aware_and_does_not_wait_for_the_past() -> None:
    clock = SystemClock()

    await clock.sleep(-1.0)

    assert clock.now().tzinfo is UTC
    assert clock.monotonic_s() <= clock.monotonic_s()
