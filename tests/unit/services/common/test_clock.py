import asyncio
from datetime import UTC, timedelta

from svc_common.clock import ManualClock, SteadyClock, SystemClock


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


def test_steady_clock_advances_by_the_monotonic_clock() -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)
    began = steady.now()

    clock.step(-7200)
    clock.advance(10)
    clock.step(3600)

    assert steady.now() - began == timedelta(seconds=10)
    assert steady.monotonic_s() == clock.monotonic_s()


def test_steady_clock_follows_a_step_ahead_on_request_and_names_it() -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)
    clock.advance(10)

    assert steady.follow() == timedelta()
    clock.step(7200)

    assert steady.follow() == timedelta(seconds=7200)
    assert steady.now() == clock.now()
    assert steady.follow() == timedelta()


def test_steady_clock_follows_no_step_back() -> None:
    clock = ManualClock()
    steady = SteadyClock(clock)
    before = steady.now()

    clock.step(-7200)

    assert steady.follow() == timedelta()
    assert steady.now() == before


def test_steady_clock_begins_no_earlier_than_the_last_record() -> None:
    clock = ManualClock()
    now_ms = SteadyClock(clock).now_ms()

    assert SteadyClock(clock, now_ms + 7_200_001).now_ms() == now_ms + 7_200_001
    assert SteadyClock(clock, now_ms - 7_200_001).now() == clock.now()
