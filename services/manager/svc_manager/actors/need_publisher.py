"""Publisher of the need of one experiment's pool."""

import asyncio
from collections.abc import Callable
from typing import Final

from svc_common import subjects
from svc_common.clock import Clock
from svc_common.errors import ServiceError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus
from svc_common.tasks import TaskOwner
from svc_manager.domain.demand import ExperimentDemand

INTERVAL_S: Final = 0.25
"""Least time between two messages: of the changes in a storm of trials only the last one counts."""
RETRY_S: Final = 1.0
"""Pause after a message that the bus did not take."""


class NeedPublisher:
    """Publisher of an experiment's demand as the last value of its pool: on change, coalesced.

    The first demand is always published: the manager before may have ended in between. Messages of
    one pool never overlap.

    Args:
        bus: takes the messages.
        clock: for pauses.
        pool: the pool.
        encode: encodes the message of a demand when it is published.
        owner: pool on whose subject the demand is published; None: the same. Experiments that
            share a pool have a subject each.
    """

    def __init__(
        self,
        bus: Bus,
        clock: Clock,
        pool: str,
        encode: Callable[[ExperimentDemand], bytes],
        owner: str | None = None,
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._pool = pool
        self._encode = encode
        self._subject = subjects.pool_need_subject(owner or pool)
        self._wanted: ExperimentDemand | None = None
        self._published: ExperimentDemand | None = None
        self._current = asyncio.Event()
        self._publishing = False
        self._tasks = TaskOwner(self._failed)

    def update(self, demand: ExperimentDemand) -> None:
        """Publish a demand in the background, coalesced, unless it equals the last one."""
        if demand == self._wanted:
            return
        self._wanted = demand
        self._current.clear()
        if not self._publishing:
            self._publishing = True
            self._tasks.start(self._publish(), "publish need")

    async def flush(self) -> None:
        """Wait until the bus has the latest demand, however often it must be sent."""
        await self._current.wait()

    async def aclose(self) -> None:
        """Cancel a message under way; the next owner of the experiment publishes it."""
        await self._tasks.aclose()

    async def _publish(self) -> None:
        try:
            while self._wanted is not None and self._wanted != self._published:
                if await self._publish_once(self._wanted):
                    await self._clock.sleep(INTERVAL_S)
                else:
                    await self._clock.sleep(RETRY_S)
        finally:
            self._publishing = False

    async def _publish_once(self, demand: ExperimentDemand) -> bool:
        """Publish a demand (at first open the pool's queue); return False, logged, on failure."""
        try:
            if self._published is None:
                # The pool's agents have no right to make a queue.
                await self._bus.tasks.open_pool(self._pool)
            await self._bus.last_values.publish(self._subject, self._encode(demand))
        except ServiceError as error:
            get_logger().warning("need not published", pool=self._pool, error=error.message)
            return False
        self._published = demand
        if demand == self._wanted:
            self._current.set()
        return True

    def _failed(self, name: str, error: BaseException) -> None:
        get_logger().error("need not published", pool=self._pool, task=name, exc_info=error)
