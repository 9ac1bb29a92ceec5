"""One-shot timer of an experiment actor."""

import asyncio
from collections.abc import Callable

from svc_common.clock import Clock


class Timer:
    """One-shot timer that can be reset to a wall-clock time; calls `wake` when it fires.

    Args:
        clock: source of time.
        wake: called when the timer fires.
    """

    def __init__(self, clock: Clock, wake: Callable[[], None]) -> None:
        self._clock = clock
        self._wake = wake
        self._task: asyncio.Task[None] | None = None
        self._moment_ms: int | None = None

    async def set(self, moment_ms: int | None) -> None:
        """Reset the timer to fire at ``moment_ms`` (ms since 1970), or never for None."""
        # Moments are sums of times rounded to ms: a difference of 1 ms is the same moment.
        if moment_ms == self._moment_ms or (
            moment_ms is not None
            and self._moment_ms is not None
            and abs(moment_ms - self._moment_ms) <= 1
        ):
            return
        await self.aclose()
        self._moment_ms = moment_ms
        if moment_ms is not None:
            self._task = asyncio.create_task(self._fire(moment_ms), name="timer")

    async def aclose(self) -> None:
        """Cancel the timer; may be called twice."""
        task, self._task = self._task, None
        self._moment_ms = None
        if task is not None:
            task.cancel()
            await asyncio.wait({task})

    async def _fire(self, moment_ms: int) -> None:
        now_ms = self._clock.now().timestamp() * 1000
        # One ms more, so that the moment has passed when the actor reads the clock.
        await self._clock.sleep((moment_ms - now_ms + 1) / 1000)
        self._moment_ms = None
        self._wake()
