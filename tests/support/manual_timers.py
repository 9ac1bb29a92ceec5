"""Event loop timers that a test fires by hand."""

import asyncio
from collections.abc import Callable
from contextvars import Context
from typing import Any

import pytest


class ManualTimers:
    """Timers of one delay, taken out of real time; all other delays stay with the loop.

    Made on a running loop; the loop is restored with the test's `monkeypatch`.

    Args:
        monkeypatch: of the test.
        delay_s: delay of the timers; unique among the delays that the code under test uses.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, delay_s: float) -> None:
        loop = asyncio.get_running_loop()
        call_later = loop.call_later
        self._pending: list[tuple[asyncio.TimerHandle, Callable[[], object]]] = []
        self._set = asyncio.Event()

        def patched(
            delay: float,
            callback: Callable[..., object],
            *args: Any,
            context: Context | None = None,
        ) -> asyncio.TimerHandle:
            if delay != delay_s:
                return call_later(delay, callback, *args, context=context)
            timer = asyncio.TimerHandle(loop.time() + delay, callback, args, loop, context)
            self._pending.append((timer, lambda: callback(*args)))
            self._set.set()
            return timer

        monkeypatch.setattr(loop, "call_later", patched)

    @property
    def pending(self) -> int:
        """Number of timers that were neither fired nor cancelled."""
        return sum(not timer.cancelled() for timer, _ in self._pending)

    async def wait_pending(self, count: int = 1) -> None:
        """Wait until at least `count` timers are pending."""
        while self.pending < count:
            self._set.clear()
            await self._set.wait()

    def fire(self) -> None:
        """Run the callbacks of all pending timers, in the order of their creation."""
        pending, self._pending = self._pending, []
        for timer, call in pending:
            if not timer.cancelled():
                call()
