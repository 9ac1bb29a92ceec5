"""Turns of callers at work that costs the dispatcher time: a few at a time for each caller."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from svc_common.access.current_call import caller_name
from svc_common.errors import ResourceExhaustedError

TURNS: Final = 2
"""Requests of one caller that run at a time; the dispatcher runs three checks."""
WAITING_LIMIT: Final = 32
"""Most requests of one caller that wait for their turn."""


@dataclass(slots=True)
class _Queue:
    turns: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(TURNS))
    requests: int = 0


class CallerTurns:
    """Two turns at a time for each caller, in the order of its requests.

    A caller with many slow requests delays itself: to others it is two requests.
    """

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Wait for the turn of the current caller; it lasts as long as the block.

        Raises:
            ResourceExhaustedError: 32 requests of this caller wait already.
        """
        name = caller_name()
        queue = self._queues.setdefault(name, _Queue())
        if queue.requests >= TURNS + WAITING_LIMIT:
            raise ResourceExhaustedError(
                f"{WAITING_LIMIT} requests of this caller are waiting already; try again later"
            )
        queue.requests += 1
        try:
            async with queue.turns:
                yield
        finally:
            queue.requests -= 1
            if not queue.requests:
                del self._queues[name]
