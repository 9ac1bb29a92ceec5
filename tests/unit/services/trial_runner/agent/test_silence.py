import asyncio
import os
from collections.abc import Callable

from svc_common.clock import ManualClock
from svc_trial_runner.agent.silence import (
    REFUSED_EXIT_CODE,
    REFUSED_LIMIT_S,
    SILENCE_EXIT_CODE,
    wait_silent,
)

LIMIT_S = 120.0


class Bus:
    """Bus that a test connects and cuts."""

    def __init__(self) -> None:
        self._up, self._down = asyncio.Event(), asyncio.Event()
        self.cut()

    def connect(self) -> None:
        self._up.set()
        self._down.clear()

    def cut(self) -> None:
        self._up.clear()
        self._down.set()

    async def connected(self) -> None:
        await self._up.wait()

    async def disconnected(self) -> None:
        await self._down.wait()


async def settle(condition: Callable[[], bool]) -> None:
    """Let tasks run until a condition holds; fail if it does not within many turns."""
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition does not hold")


def test_exit_codes_are_those_of_sysexits() -> None:
    assert (SILENCE_EXIT_CODE, REFUSED_EXIT_CODE) == (os.EX_TEMPFAIL, os.EX_NOPERM)


def test_credentials_count_as_revoked_after_five_seconds() -> None:
    assert REFUSED_LIMIT_S == 5


async def test_silence_from_the_start_ends_after_the_limit() -> None:
    bus, clock = Bus(), ManualClock()
    waiting = asyncio.ensure_future(wait_silent(bus.connected, bus.disconnected, clock, LIMIT_S))
    await settle(lambda: clock.sleepers == 1)

    clock.advance(LIMIT_S - 1)
    await settle(lambda: clock.sleepers == 1)
    assert not waiting.done()
    clock.advance(1)

    await asyncio.wait_for(waiting, 10)


async def test_connection_within_the_limit_starts_it_anew() -> None:
    bus, clock = Bus(), ManualClock()
    waiting = asyncio.ensure_future(wait_silent(bus.connected, bus.disconnected, clock, LIMIT_S))
    for _ in range(3):
        await settle(lambda: clock.sleepers == 1)
        clock.advance(LIMIT_S - 1)
        bus.connect()
        await settle(lambda: clock.sleepers == 0)
        clock.advance(10 * LIMIT_S)  # connected all the time
        bus.cut()
    await settle(lambda: clock.sleepers == 1)
    assert not waiting.done()

    clock.advance(LIMIT_S)

    await asyncio.wait_for(waiting, 10)


async def test_no_time_is_measured_while_the_bus_is_connected() -> None:
    bus, clock = Bus(), ManualClock()
    bus.connect()
    waiting = asyncio.ensure_future(wait_silent(bus.connected, bus.disconnected, clock, LIMIT_S))

    sleepers = []
    for _ in range(20):
        await asyncio.sleep(0)
        sleepers.append(clock.sleepers)

    assert set(sleepers) == {0}
    waiting.cancel()
    await asyncio.gather(waiting, return_exceptions=True)
