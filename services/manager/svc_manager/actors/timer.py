"""Wakes somebody at one moment."""

import asyncio
from collections.abc import Callable

from svc_common.clock import Clock


class Timer:
    """One alarm that can be set anew; belongs to one actor, which closes it.

    Args:
        clock: tells the time and waits for it.
        wake: called when the moment has come.
    """

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._task: asyncio.Task[None] | None = None
        self._moment_ms: int | None = None

    async def set(self, moment_ms: int | None) -> None:
        """Wake at ``moment_ms`` (ms since 1970) instead of whatever was set; None: never."""
        # A moment is a sum of times that were rounded to ms; a rest of one is the same moment.
        if moment_ms == self._moment_ms or (
            moment_ms is not None
            and self._moment_ms is not None
            and abs(moment_ms - self._moment_ms) <= 1
        ):
            return
        await self.aclose()
        self._moment_ms = moment_ms
        if moment_ms is not None:
            self._task = asyncio.create_task(self._ring(moment_ms), name="alarm")

    async def aclose(self) -> None:
        """Wake nobody any more; may be called twice."""
        task, self._task = self._task, None
        self._moment_ms = None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _ring(self, moment_ms: int) -> None:
        now_ms = self._clock.now().timestamp() * 1000
        # A ms more, so that the time has really passed when somebody looks.
        await self._clock.sleep((moment_ms - now_ms + 1) / 1000)
        self._moment_ms = None
        self._wake()
