"""Publisher of a pool's need: at once, coalesced, again after a failure."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest

from svc_common import subjects
from svc_common.clock import ManualClock
from svc_common.errors import ServiceError, UnavailableError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.actors.need_publisher import INTERVAL_S, RETRY_S, NeedPublisher
from svc_manager.domain.demand import ExperimentDemand

POOL = "exp-ab12cd34"
PATIENCE_S = 60.0
"""Time limit for steps that take milliseconds on an idle machine."""


def demand(waiting: int) -> ExperimentDemand:
    return ExperimentDemand(waiting, 0, 4, closed=False)


class Published:
    """Bus in memory whose needs of one pool a test reads."""

    def __init__(self, bus: InMemoryBus) -> None:
        self.bus = bus
        self.clock = ManualClock()
        self.trouble: list[ServiceError] = []
        """Errors of the next messages."""
        self.publisher = NeedPublisher(bus, self.clock, POOL, self._encode)

    def _encode(self, demand: ExperimentDemand) -> bytes:
        if self.trouble:
            raise self.trouble.pop()
        return str(demand.waiting_count).encode()

    async def flush(self) -> None:
        async with asyncio.timeout(PATIENCE_S):
            await self.publisher.flush()

    async def now(self) -> list[bytes]:
        found = await self.bus.last_values.read(subjects.pool_need_subject(POOL))
        return [one.payload for one in found]


@pytest.fixture
async def published() -> AsyncIterator[Published]:
    async with InMemoryBus() as bus:
        made = Published(bus)
        yield made
        await made.publisher.aclose()


async def test_first_demand_is_published_at_once(published: Published) -> None:
    published.publisher.update(demand(1))
    await published.flush()

    assert await published.now() == [b"1"]


async def test_need_that_the_bus_did_not_take_is_published_again(published: Published) -> None:
    published.trouble = [UnavailableError("the bus is away")]

    published.publisher.update(demand(1))
    await sleeping(published.clock)
    before = await published.now()
    published.clock.advance(RETRY_S)
    await published.flush()

    assert (before, await published.now()) == ([], [b"1"])


async def test_of_the_changes_within_an_interval_the_last_one_is_published(
    published: Published,
) -> None:
    seen = []
    async with aclosing(
        published.bus.last_values.follow(subjects.pool_need_subject(POOL))
    ) as followed:
        published.publisher.update(demand(1))
        seen.append((await anext(followed)).payload)
        for waiting in range(2, 50):
            published.publisher.update(demand(waiting))
        await sleeping(published.clock)
        published.clock.advance(INTERVAL_S)
        seen.append((await anext(followed)).payload)

    await published.flush()
    assert seen == [b"1", b"49"]


async def test_demand_that_did_not_change_is_not_published_again(published: Published) -> None:
    published.publisher.update(demand(1))
    await published.flush()
    subject = subjects.pool_need_subject(POOL)
    await published.bus.last_values.delete(subject)

    published.publisher.update(demand(1))
    await published.flush()

    assert await published.now() == []


async def sleeping(clock: ManualClock) -> None:
    """Wait until the publisher pauses."""
    async with asyncio.timeout(PATIENCE_S):
        while not clock.sleepers:  # noqa: ASYNC110 - all happens in this loop
            await asyncio.sleep(0)


async def test_demand_for_a_shared_pool_is_published_on_the_subject_of_its_owner() -> None:
    async with InMemoryBus() as bus:
        publisher = NeedPublisher(bus, ManualClock(), "gpus", lambda _: b"need", POOL)

        publisher.update(demand(1))
        async with asyncio.timeout(PATIENCE_S):
            await publisher.flush()

        found = await bus.last_values.read(subjects.ALL_POOL_NEEDS)
        await publisher.aclose()
    assert [one.subject for one in found] == [subjects.pool_need_subject(POOL)]
