"""Clocks that are passed in as arguments: the system clock, and a manual one for tests."""

import asyncio
import heapq
import itertools
import time
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

CLOCK_STEP: Final = timedelta(seconds=1)
"""Smallest lead of the wall clock over the monotonic one that is a step and no inaccuracy."""
_CLOCK_STEP_US: Final = CLOCK_STEP // timedelta(microseconds=1)
_NO_STEP: Final = timedelta()


class Clock(Protocol):
    """Interface of a clock: time of day, monotonic time, sleep; replaced in tests."""

    def now(self) -> datetime:
        """Return the time of day as an aware datetime in UTC."""
        ...

    def monotonic_s(self) -> float:
        """Return the seconds since a fixed instant; never decreases."""
        ...

    async def sleep(self, duration_s: float) -> None:
        """Wait for `duration_s` seconds; at once if it is not positive."""
        ...


class SystemClock:
    """Clock of this machine: system time, monotonic time and `asyncio.sleep`."""

    def now(self) -> datetime:
        """Return the time of day as an aware datetime in UTC."""
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        """Return the seconds since a fixed instant; never decreases."""
        return time.monotonic()

    async def sleep(self, duration_s: float) -> None:
        """Wait for `duration_s` seconds; at once if it is not positive."""
        await asyncio.sleep(max(0.0, duration_s))


class SteadyClock:
    """`Clock` of one owner whose time of day advances by the monotonic clock and never goes back.

    A wall clock that is set back is not followed. One that is set ahead is followed by `follow`
    only, so that the owner can tell a step from time that has passed.

    Args:
        clock: wall clock and monotonic clock.
        at_least_ms: earliest time of day, such as that of the owner's last record, ms since 1970.
    """

    def __init__(self, clock: Clock, at_least_ms: int = 0) -> None:
        self._clock = clock
        now = clock.now()
        if at_least_ms:
            now = max(now, _EPOCH + timedelta(milliseconds=at_least_ms))
        self._set(now)

    def _set(self, now: datetime) -> None:
        """Set the time of day to `now`, from which the monotonic clock advances it."""
        self._began = now
        self._began_s = self._clock.monotonic_s()
        self._began_us = (now - _EPOCH) // timedelta(microseconds=1)

    def now(self) -> datetime:
        """Return the time of day as an aware datetime in UTC."""
        return self._began + timedelta(seconds=self._clock.monotonic_s() - self._began_s)

    def now_ms(self) -> int:
        """Return the time of day as ms since 1970."""
        # The same as `now`, in numbers: several calls a trial, each of which makes no objects.
        elapsed_us = round((self._clock.monotonic_s() - self._began_s) * 1e6)
        return (self._began_us + elapsed_us) // 1000

    def monotonic_s(self) -> float:
        """Return the seconds since a fixed instant; never decreases."""
        return self._clock.monotonic_s()

    async def sleep(self, duration_s: float) -> None:
        """Wait for `duration_s` seconds; at once if it is not positive."""
        await self._clock.sleep(duration_s)

    def follow(self) -> timedelta:
        """Follow the wall clock if it is a second or more ahead; return by how much, else zero."""
        elapsed_s, wall = self._clock.monotonic_s() - self._began_s, self._clock.now()
        # In numbers, as in `now_ms`: once a round.
        lead_us = round(((wall - self._began).total_seconds() - elapsed_s) * 1e6)
        if lead_us < _CLOCK_STEP_US:
            return _NO_STEP
        now = self._began + timedelta(seconds=elapsed_s)
        self._set(wall)
        return wall - now


class ManualClock:
    """Test clock that stands still until `advance` or `step` is called.

    Args:
        start: time of day at the beginning.
    """

    def __init__(self, start: datetime = datetime(2020, 1, 1, tzinfo=UTC)) -> None:
        self._start = start
        self._elapsed_s = 0.0
        self._order = itertools.count()
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []

    def now(self) -> datetime:
        """Return the time of day as an aware datetime in UTC."""
        return self._start + timedelta(seconds=self._elapsed_s)

    def monotonic_s(self) -> float:
        """Return the seconds since a fixed instant; never decreases."""
        return self._elapsed_s

    async def sleep(self, duration_s: float) -> None:
        """Sleep until `advance` has moved this clock by ``duration_s`` in total."""
        if duration_s <= 0:
            await asyncio.sleep(0)
            return
        waker: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._elapsed_s + duration_s, next(self._order), waker))
        await waker

    @property
    def sleepers(self) -> int:
        """Number of tasks that sleep; a test waits for it before it advances the clock."""
        return sum(1 for _, _, waker in self._sleepers if not waker.done())

    def step(self, step_s: float) -> None:
        """Set the time of day ahead, or back if negative; the monotonic clock does not change."""
        self._start += timedelta(seconds=step_s)

    def advance(self, duration_s: float) -> None:
        """Move this clock forward at once, then wake tasks whose sleep is over, earliest first."""
        self._elapsed_s += duration_s
        while self._sleepers and self._sleepers[0][0] <= self._elapsed_s:
            _, _, waker = heapq.heappop(self._sleepers)
            if not waker.done():
                waker.set_result(None)
