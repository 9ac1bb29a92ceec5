"""Clocks that are passed in as arguments: the system clock, and a manual one for tests."""

import asyncio
import heapq
import itertools
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Source of the time, and of waits."""

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
    """`Clock` of this machine."""

    def now(self) -> datetime:
        """Return the time of day as an aware datetime in UTC."""
        return datetime.now(UTC)

    def monotonic_s(self) -> float:
        """Return the seconds since a fixed instant; never decreases."""
        return time.monotonic()

    async def sleep(self, duration_s: float) -> None:
        """Wait for `duration_s` seconds; at once if it is not positive."""
        await asyncio.sleep(max(0.0, duration_s))


class ManualClock:
    """`Clock` that stands still until a test calls `advance`.

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
        """See `Clock.sleep`; ends when `advance` has passed the moment."""
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

    def advance(self, duration_s: float) -> None:
        """Advance the time and wake the sleepers that are due, in the order of their times."""
        self._elapsed_s += duration_s
        while self._sleepers and self._sleepers[0][0] <= self._elapsed_s:
            _, _, waker = heapq.heappop(self._sleepers)
            if not waker.done():
                waker.set_result(None)
