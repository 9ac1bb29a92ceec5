from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest

from svc_common.clock import ManualClock
from svc_common.errors import LostOwnershipError, ResourceExhaustedError
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.ports import Bus
from svc_manager.event_log.writer import LogWriter

NO_ROOM = "the bus is out of room: insufficient resources; free disk space"


class Crowded:
    """The logs of a bus that has no room for a while, or is slow."""

    def __init__(self, bus: InMemoryBus) -> None:
        self._bus = bus
        self.full = False
        self.tries = 0
        self.ready = asyncio.Event()
        self.ready.set()

    async def append(
        self,
        experiment_id: str,
        payload: bytes,
        *,
        expected_sequence: int,
        epoch: int,
        append_id: str,
    ) -> int:
        self.tries += 1
        await self.ready.wait()
        if self.full:
            raise ResourceExhaustedError(NO_ROOM)
        return await self._bus.events.append(
            experiment_id,
            payload,
            expected_sequence=expected_sequence,
            epoch=epoch,
            append_id=append_id,
        )


@dataclass
class Desk:
    clock: ManualClock
    bus: SimpleNamespace
    events: Crowded

    def writer(self, epoch: int = 1) -> LogWriter:
        return LogWriter("exp1", epoch, cast("Bus", self.bus), self.clock)


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    async with InMemoryBus() as bus:
        events = Crowded(bus)
        port = SimpleNamespace(events=events, connected=True, disk_trouble="")
        yield Desk(ManualClock(), port, events)


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_batches_are_appended_one_behind_the_other(desk: Desk) -> None:
    writer = desk.writer()

    first = await writer.append(b"one", 0)
    second = await writer.append(b"two", first)

    assert second > first
    assert (writer.append_count, writer.waiting_for) == (2, "")


async def test_facts_for_which_there_is_no_room_wait_and_the_reason_shows(desk: Desk) -> None:
    writer = desk.writer()
    first = await writer.append(b"one", 0)
    desk.events.full = True

    appending = asyncio.ensure_future(writer.append(b"two", first))
    await turns()
    assert writer.waiting_for == NO_ROOM
    desk.events.full = False
    desk.clock.advance(2.0)

    assert await appending > first
    assert writer.waiting_for == ""
    assert writer.append_count == 2


async def test_a_new_experiment_for_which_there_is_no_room_is_refused(desk: Desk) -> None:
    desk.events.full = True

    with pytest.raises(ResourceExhaustedError, match="free disk space"):
        await desk.writer().append(b"one", 0)


async def test_who_is_ending_does_not_wait_for_room(desk: Desk) -> None:
    writer = desk.writer()
    first = await writer.append(b"one", 0)
    desk.events.full = True
    appending = asyncio.ensure_future(writer.append(b"two", first))
    await turns()

    writer.stop_retrying()
    desk.clock.advance(2.0)

    with pytest.raises(ResourceExhaustedError):
        await appending


async def test_an_append_that_takes_long_and_a_bus_that_is_away_show(desk: Desk) -> None:
    writer = desk.writer()
    desk.events.ready.clear()
    appending = asyncio.ensure_future(writer.append(b"one", 0))
    await turns()
    assert writer.waiting_for == ""
    desk.clock.advance(3.0)
    assert writer.waiting_for == "waiting for the bus to store events"
    desk.bus.connected = False
    assert writer.waiting_for == "waiting for the bus: it cannot be reached"
    desk.events.ready.set()

    assert await appending > 0


async def test_a_full_disk_of_the_bus_is_named_before_what_follows_from_it(desk: Desk) -> None:
    writer = desk.writer()
    first = await writer.append(b"one", 0)
    desk.events.full = True
    desk.bus.disk_trouble = "the bus's disk is full: 3 MB are free"

    with pytest.raises(ResourceExhaustedError, match="disk is full: 3 MB are free"):
        await desk.writer(2).append(b"other", 0)
    appending = asyncio.ensure_future(writer.append(b"two", first))
    await turns()
    assert writer.waiting_for == f"the bus's disk is full: 3 MB are free ({NO_ROOM})"
    desk.bus.connected = False
    desk.events.full = False
    desk.clock.advance(2.0)
    await appending

    assert writer.waiting_for.startswith("the bus's disk is full: 3 MB are free (waiting for the")


async def test_of_two_owners_with_one_epoch_the_second_loses_its_ownership(desk: Desk) -> None:
    one, two = desk.writer(), desk.writer()
    await one.append(b"one", 0)

    with pytest.raises(LostOwnershipError):
        await two.append(b"two", 0)
