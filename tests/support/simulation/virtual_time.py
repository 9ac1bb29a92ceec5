"""Virtual clock with an event queue, and the simulated processes that use it."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualTime:
    """Clock driven by a heap of scheduled calls; implements the parts of `Clock` without a loop.

    Calls due at the same moment run in the order in which they were scheduled, so one seed
    has one history.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.wall_step_s = 0.0
        """Sum of the steps of the wall clock."""
        self.steps = 0
        """Number of calls that have run."""
        self._count = 0
        self._due: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []

    def at(self, delay_s: float, call: Callable[..., None], *args: Any) -> None:
        """Schedule a call in ``delay_s`` seconds."""
        self._count += 1
        heapq.heappush(self._due, (self.now_s + delay_s, self._count, call, args))

    def step(self) -> None:
        """Advance the clock to the next call and run it."""
        self.now_s, _, call, args = heapq.heappop(self._due)
        self.steps += 1
        call(*args)

    def now(self) -> datetime:
        """Return the time of day as an aware datetime in UTC."""
        return START + timedelta(seconds=self.now_s + self.wall_step_s)

    def now_ms(self) -> int:
        """Return milliseconds since 1970, the unit of a manager's decision round."""
        return int(self.now().timestamp() * 1000)

    def monotonic_s(self) -> float:
        """Return the seconds since a fixed instant; never decreases."""
        return self.now_s

    async def sleep(self, duration_s: float) -> None:
        """Raise: no simulated process may wait in a coroutine."""
        raise AssertionError(f"a simulated process sleeps for {duration_s} s")


class Node:
    """Simulated process that can be killed, frozen and cut off from the bus.

    A kill cancels the calls that it has scheduled; a freeze defers them until the thaw.
    """

    def __init__(self, time: VirtualTime, name: str) -> None:
        self.time = time
        self.name = name
        self.boot = 0
        """Number of the present run; calls scheduled by an earlier run are dropped."""
        self.alive = False
        self.frozen = False
        self.linked = True
        self.sent_until_s = 0.0
        """Arrival of the last message sent so far: a connection keeps their order."""
        self.received_until_s = 0.0
        """The same for received messages."""
        self._backlog: list[tuple[int, Callable[..., None], tuple[Any, ...]]] = []

    def later(self, delay_s: float, call: Callable[..., None], *args: Any) -> None:
        """Schedule a call in ``delay_s`` seconds; a restart or kill cancels it."""
        self.time.at(delay_s, self._fire, self.boot, call, args)

    def later_in(self, boot: int, delay_s: float, call: Callable[..., None], *args: Any) -> None:
        """Schedule a call in ``delay_s`` seconds; it is dropped unless run ``boot`` still lasts."""
        self.time.at(delay_s, self._fire, boot, call, args)

    def _fire(self, boot: int, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        if boot != self.boot or not self.alive:
            return
        if self.frozen:
            self._backlog.append((boot, call, args))
        else:
            call(*args)

    def start(self) -> None:
        """Start the process unless it runs; increase its boot number."""
        if self.alive:
            return
        self.alive = True
        self.boot += 1
        self.started()

    def kill(self) -> None:
        """Kill the process as SIGKILL does."""
        self.alive = False
        self.frozen = False
        self.boot += 1
        self._backlog.clear()
        self.killed()

    def freeze(self) -> None:
        """Freeze the process as SIGSTOP does."""
        self.frozen = self.alive

    def thaw(self) -> None:
        """Continue the process as SIGCONT does; run the calls that became due meanwhile."""
        self.frozen = False
        backlog, self._backlog = self._backlog, []
        for boot, call, args in backlog:
            self._fire(boot, call, args)

    def started(self) -> None:
        """Handle the start of the process; overridden."""

    def killed(self) -> None:
        """Clear the state that is not on disk; overridden."""

    def reconnected(self) -> None:
        """Handle the reconnection to the bus; overridden."""
