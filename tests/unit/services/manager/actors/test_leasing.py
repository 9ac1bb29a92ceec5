"""Ownership of experiments between two managers with manual clocks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from svc_common.clock import ManualClock
from svc_common.errors import UnavailableError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.actors.leasing import CALM_S, LOOK_EVERY_S, TTL_S, OwnedElsewhereError, Ownership
from svc_manager.adapters.memory_leases import InMemoryLeases
from svc_manager.domain.lease import Lease, ManagerId


class Store(InMemoryLeases):
    """Leases that may be away, or lost."""

    away = False

    async def acquire(self, name: str, owner: str, ttl_s: float, above: int = 0) -> Lease | None:
        self._check()
        return await super().acquire(name, owner, ttl_s, above)

    async def renew(self, leases: Collection[Lease], ttl_s: float) -> list[Lease]:
        self._check()
        return await super().renew(leases, ttl_s)

    def lose_everything(self) -> None:
        self._held.clear()
        self._epochs.clear()

    def _check(self) -> None:
        if self.away:
            raise UnavailableError("Redis is away")


@dataclass
class RecordingManager:
    """Manager that keeps its leases and records the callbacks."""

    ownership: Ownership
    lost: list[str] = field(default_factory=list)
    ownerless: list[str] = field(default_factory=list)
    doubts: int = 0

    def doubt(self) -> None:
        self.doubts += 1

    @contextmanager
    def living(self) -> Iterator[None]:
        keeping = asyncio.ensure_future(
            self.ownership.keep(self.lost.append, self.ownerless.append, self.doubt)
        )
        try:
            yield
        finally:
            keeping.cancel()


@dataclass
class Place:
    clock: ManualClock
    store: Store
    bus: InMemoryBus

    def manager(self, name: str, *, shared: bool = True) -> RecordingManager:
        ownership = Ownership(
            self.store, ManagerId(name), self.clock, self.bus.signals, shared=shared
        )
        ownership.set_addresses(f"{name}:1", f"{name}:2")
        return RecordingManager(ownership)

    async def passes(self, duration_s: float) -> None:
        """Let time pass in steps that are shorter than those of the managers."""
        left_s = duration_s
        while left_s > 0:
            self.clock.advance(LOOK_EVERY_S / 2)
            left_s -= LOOK_EVERY_S / 2
            for _ in range(20):
                await asyncio.sleep(0)


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    clock = ManualClock()
    async with InMemoryBus() as bus:
        yield Place(clock, Store(clock), bus)


async def test_an_experiment_has_one_owner_and_others_learn_who(place: Place) -> None:
    one, two = place.manager("one"), place.manager("two")

    epoch = await one.ownership.take("e1", above=4)

    assert epoch == 5
    with pytest.raises(OwnedElsewhereError) as elsewhere:
        await two.ownership.take("e1", above=4)
    assert elsewhere.value.manager == ManagerId("one", "one:1", "one:2")


async def test_leases_are_held_as_long_as_they_are_kept(place: Place) -> None:
    one, two = place.manager("one"), place.manager("two")
    await one.ownership.take("e1", 0)

    with one.living(), two.living():
        await place.passes(10 * TTL_S)

    assert (one.lost, two.ownerless) == ([], [])
    assert [other.boot_id for other in two.ownership.others] == ["one"]


async def test_experiments_of_a_dead_manager_are_vacant_after_their_time(place: Place) -> None:
    one, two = place.manager("one"), place.manager("two")
    await one.ownership.take("e1", 0)
    with two.living():
        with one.living():
            await place.passes(1.0)
        assert two.ownerless == []

        await place.passes(TTL_S + LOOK_EVERY_S)

        assert two.ownerless == ["e1"]
        assert two.doubts == 1, "it may have had more experiments, unseen"
        assert await two.ownership.take("e1", 1) == 2


async def test_experiments_of_one_that_leaves_are_vacant_at_once(place: Place) -> None:
    one, two = place.manager("one"), place.manager("two")
    with two.living():
        with one.living():
            await place.passes(1.0)
            await one.ownership.take("e1", 0)  # two has not looked since

        await one.ownership.leave()
        for _ in range(50):
            await asyncio.sleep(0)

        assert two.ownerless == ["e1"]


async def test_an_owner_that_slept_too_long_learns_that_it_has_lost(place: Place) -> None:
    one, two = place.manager("one"), place.manager("two")
    await one.ownership.take("e1", 0)
    await one.ownership.take("e2", 0)
    place.clock.advance(TTL_S)
    await two.ownership.take("e1", 1)

    with one.living():
        await place.passes(1.0)

    assert one.lost == ["e1"], "the other one was not taken meanwhile"
    assert one.doubts == 1


async def test_leases_that_their_store_lost_go_back_to_their_owners(place: Place) -> None:
    one, two = place.manager("one"), place.manager("two")
    await one.ownership.take("e1", 7)
    with one.living(), two.living():
        await place.passes(1.0)

        place.store.lose_everything()
        with pytest.raises(OwnedElsewhereError):
            await two.ownership.take("e1", 8)
        await place.passes(2 * CALM_S)

    lease = await place.store.holder("e1")
    assert lease is not None
    assert ManagerId.of(lease.owner).boot_id == "one"
    assert lease.epoch > 8
    assert (one.lost, two.ownerless) == ([], [])


async def test_while_the_store_is_away_all_managers_keep_their_experiments(
    place: Place,
) -> None:
    one, two = place.manager("one"), place.manager("two")
    await one.ownership.take("e1", 0)
    with one.living(), two.living():
        await place.passes(1.0)
        place.store.away = True
        await place.passes(3 * TTL_S)

        assert await two.ownership.take("new", 0) == 1, "no other manager can know of it"
        with pytest.raises(OwnedElsewhereError):
            await two.ownership.take("e1", 1)
        place.store.away = False
        await place.passes(2 * CALM_S)

    assert (one.lost, two.ownerless) == ([], [])
    holders = await place.store.holders()
    assert ManagerId.of(holders["e1"].owner).boot_id == "one"
    assert ManagerId.of(holders["new"].owner).boot_id == "two"


async def test_a_manager_takes_over_at_once_from_its_earlier_process(place: Place) -> None:
    before, after = place.manager("before"), place.manager("after")
    after.ownership.set_addresses("before:1", "before:2")
    await before.ownership.take("e1", 0)

    assert await after.ownership.take("e1", 1) == 2


async def test_one_that_is_not_reachable_yet_takes_nothing(place: Place) -> None:
    starting = Ownership(place.store, ManagerId("x"), place.clock, place.bus.signals, shared=True)

    with pytest.raises(UnavailableError, match="starting"):
        await starting.take("e1", 0)


async def test_a_manager_that_is_alone_needs_no_keeping(place: Place) -> None:
    alone = place.manager("alone", shared=False)
    assert await alone.ownership.take("e1", 3) == 4

    place.clock.advance(100 * TTL_S)

    assert await alone.ownership.take("e1", 4) == 5
    assert alone.ownership.others == []
