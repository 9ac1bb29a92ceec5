"""Time that passes only when something happens, and processes that live in it."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

START = datetime(2026, 1, 1, tzinfo=UTC)


class VirtualTime:
    """A heap of what is to happen; implements the parts of `Clock` that need no loop.

    Things due at the same moment happen in the order in which they were asked for, so one seed
    gives one history.
    """

    def __init__(self) -> None:
        self.now_s = 0.0
        self.steps = 0
        """How many things have happened."""
        self._count = 0
        self._due: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []

    def at(self, delay_s: float, call: Callable[..., None], *args: Any) -> None:
        """Call in ``delay_s`` seconds."""
        self._count += 1
        heapq.heappush(self._due, (self.now_s + delay_s, self._count, call, args))

    def step(self) -> None:
        """Let the next thing happen."""
        self.now_s, _, call, args = heapq.heappop(self._due)
        self.steps += 1
        call(*args)

    def now(self) -> datetime:
        """See `Clock.now`."""
        return START + timedelta(seconds=self.now_s)

    def now_ms(self) -> int:
        """Give milliseconds since 1970, as a manager's round does."""
        return int(self.now().timestamp() * 1000)

    def monotonic_s(self) -> float:
        """See `Clock.monotonic_s`."""
        return self.now_s

    async def sleep(self, duration_s: float) -> None:
        """See `Clock.sleep`; nothing simulated may wait in a coroutine."""
        raise AssertionError(f"somebody sleeps for {duration_s} s")


class Node:
    """A process that may die, freeze and lose its link to the bus.

    What it has asked to happen dies with it; while it is frozen, that waits for the thaw.
    """

    def __init__(self, time: VirtualTime, name: str) -> None:
        self.time = time
        self.name = name
        self.boot = 0
        """Number of its present life; words for an earlier one are not heard."""
        self.alive = False
        self.frozen = False
        self.linked = True
        self.sent_until_s = 0.0
        """When the last message sent so far arrives: a connection keeps their order."""
        self.received_until_s = 0.0
        """The same for what comes in."""
        self._backlog: list[tuple[int, Callable[..., None], tuple[Any, ...]]] = []

    def later(self, delay_s: float, call: Callable[..., None], *args: Any) -> None:
        """Call in ``delay_s`` seconds, if this life still lasts then."""
        self.time.at(delay_s, self._fire, self.boot, call, args)

    def later_in(self, boot: int, delay_s: float, call: Callable[..., None], *args: Any) -> None:
        """Call in ``delay_s`` seconds, if the life numbered ``boot`` still lasts then."""
        self.time.at(delay_s, self._fire, boot, call, args)

    def _fire(self, boot: int, call: Callable[..., None], args: tuple[Any, ...]) -> None:
        if boot != self.boot or not self.alive:
            return
        if self.frozen:
            self._backlog.append((boot, call, args))
        else:
            call(*args)

    def start(self) -> None:
        """Begin a life."""
        if self.alive:
            return
        self.alive = True
        self.boot += 1
        self.started()

    def kill(self) -> None:
        """SIGKILL."""
        self.alive = False
        self.frozen = False
        self.boot += 1
        self._backlog.clear()
        self.killed()

    def freeze(self) -> None:
        """SIGSTOP."""
        self.frozen = self.alive

    def thaw(self) -> None:
        """SIGCONT: what was due meanwhile happens now."""
        self.frozen = False
        backlog, self._backlog = self._backlog, []
        for boot, call, args in backlog:
            self._fire(boot, call, args)

    def started(self) -> None:
        """Begin to work; overridden."""

    def killed(self) -> None:
        """Lose what is not on disk; overridden."""

    def reconnected(self) -> None:
        """The bus is back; overridden."""
