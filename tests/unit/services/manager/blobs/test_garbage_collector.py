from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from svc_common.clock import ManualClock
from svc_common.errors import UnavailableError
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.ports import BlobInfo
from svc_manager.blobs.garbage_collector import GarbageCollector
from svc_manager.blobs.usage import UsageCounter
from svc_manager.domain.checkpoints import SavedCheckpoint
from svc_manager.domain.garbage import TOMBSTONE_MS
from svc_manager.domain.quota import Quota
from svc_manager.domain.state import Experiment
from svc_manager.event_log.tombstones import Tombstone, Tombstones
from tests.unit.services.manager.storing import GRACE, StoreFixture, digest

LONG_S = 2 * GRACE.total_seconds()


@pytest.fixture
async def shelf() -> AsyncIterator[StoreFixture]:
    async with InMemoryBus() as bus:
        yield StoreFixture(bus)


async def test_what_no_log_names_goes_and_the_rest_stays(shelf: StoreFixture) -> None:
    named, other = await shelf.blobs.put(b"named"), await shelf.blobs.put(b"other")
    await shelf.blobs.put_named("snapshot/e1/state", b"x")
    await shelf.blobs.put_named("snapshot/e2/state", b"xyz")
    await shelf.log("e1", digest(b"named"))
    shelf.clock.advance(LONG_S)

    done = await shelf.collector.collect()

    assert {blob.key for blob in done.deleted} == {other, "snapshot/e2/state"}
    assert (done.deleted_bytes, done.kept_count, done.kept_bytes) == (8, 2, 6)
    assert await shelf.blobs.exists(named)
    assert not await shelf.blobs.exists(other)


async def test_record_of_an_upload_is_deleted_with_its_checkpoint(shelf: StoreFixture) -> None:
    await shelf.access.record_upload("e1", digest(b"named"))
    await shelf.access.record_upload("e1", digest(b"dead"))
    await shelf.log("e1", digest(b"named"))
    shelf.clock.advance(LONG_S)

    done = await shelf.collector.collect()

    assert (done.deleted, done.kept_count) == ((), 0)
    assert await shelf.access.has_uploaded("e1", digest(b"named"))
    assert not await shelf.access.has_uploaded("e1", digest(b"dead"))


async def test_dry_run_deletes_nothing(shelf: StoreFixture) -> None:
    key = await shelf.blobs.put(b"other")
    shelf.clock.advance(LONG_S)

    done = await shelf.collector.collect(dry_run=True)

    assert [blob.key for blob in done.deleted] == [key]
    assert await shelf.blobs.exists(key)


async def test_what_is_young_stays_until_it_is_old(shelf: StoreFixture) -> None:
    key = await shelf.blobs.put(b"about to be named")

    first = await shelf.collector.collect()
    shelf.clock.advance(LONG_S)
    second = await shelf.collector.collect()

    assert first.deleted == ()
    assert first.next_in is not None
    assert first.next_in >= GRACE
    assert [blob.key for blob in second.deleted] == [key]
    assert second.next_in is None


async def test_released_checkpoint_goes_though_the_log_names_it(shelf: StoreFixture) -> None:
    old, new = await shelf.blobs.put(b"old"), await shelf.blobs.put(b"new")
    await shelf.log("e1", digest(b"old"), digest(b"new"))
    experiment = Experiment(id="e1")
    for name, content in (("/c/0", b"old"), ("/c/1", b"new")):
        experiment.checkpoints[name] = SavedCheckpoint(name, digest(content), 3)
    experiment.released_checkpoints.add("/c/0")
    shelf.live.append(experiment)
    shelf.clock.advance(LONG_S)

    await shelf.collector.collect()

    assert not await shelf.blobs.exists(old)
    assert await shelf.blobs.exists(new)


async def test_checkpoint_that_another_experiment_names_stays(shelf: StoreFixture) -> None:
    key = await shelf.blobs.put(b"shared")
    for experiment_id in ("e1", "e2"):
        await shelf.log(experiment_id, digest(b"shared"))
    experiment = Experiment(id="e1", released_checkpoints={"/c/0"})
    experiment.checkpoints["/c/0"] = SavedCheckpoint("/c/0", digest(b"shared"), 6)
    shelf.live.append(experiment)
    shelf.clock.advance(LONG_S)

    await shelf.collector.collect()

    assert await shelf.blobs.exists(key)


async def test_tombstone_is_deleted_after_its_week_and_counts_as_no_usage(
    shelf: StoreFixture,
) -> None:
    tombstones = Tombstones(shelf.blobs)
    await tombstones.put("old", Tombstone("e1", 17))
    await shelf.collector.collect()
    shelf.clock.advance(TOMBSTONE_MS / 1000 - LONG_S)
    await tombstones.put("new", Tombstone("e2", 18))

    early = await shelf.collector.collect(grace=timedelta(0))
    kept = await tombstones.get("old")
    shelf.clock.advance(LONG_S)
    late = await shelf.collector.collect()

    assert kept == Tombstone("e1", 17)
    assert await tombstones.get("old") is None
    assert await tombstones.get("new") == Tombstone("e2", 18)
    assert [(done.deleted, done.kept_count) for done in (early, late)] == [((), 0)] * 2


async def test_dry_run_keeps_a_tombstone_after_its_week(shelf: StoreFixture) -> None:
    tombstones = Tombstones(shelf.blobs)
    await tombstones.put("old", Tombstone("e1", 17))
    shelf.clock.advance(TOMBSTONE_MS / 1000)

    await shelf.collector.collect(dry_run=True)

    assert await tombstones.get("old") is not None


class BusyStore(InMemoryBlobStore):
    """Has its content stored again between a listing and what follows from it."""

    def __init__(self, clock: ManualClock) -> None:
        super().__init__(clock)
        self.clock = clock

    async def listing(self, prefix: str) -> list[BlobInfo]:
        found = await super().listing(prefix)
        self.clock.advance(1)
        if prefix == "sha256/":
            await self.put(b"content")
        return found


async def test_what_is_stored_again_while_it_is_swept_stays() -> None:
    async with InMemoryBus() as bus:
        shelf = StoreFixture(bus)
        blobs = BusyStore(shelf.clock)
        use = UsageCounter(blobs, shelf.references, Quota(0, 0))
        collection = GarbageCollector(blobs, shelf.references, use, list, GRACE)
        key = await blobs.put(b"content")
        shelf.clock.advance(LONG_S)

        done = await collection.collect()

        assert await blobs.exists(key)
        assert done.next_in is not None, "what stays is looked at again"


async def test_clock_of_the_store_decides_what_is_young(shelf: StoreFixture) -> None:
    # This process believes that it is 2020 plus nothing; the store's own time is what counts.
    key = await shelf.blobs.put(b"other")
    shelf.clock.advance((GRACE - timedelta(seconds=1)).total_seconds())

    await shelf.collector.collect()

    assert await shelf.blobs.exists(key)


class AwayStore(InMemoryBlobStore):
    """Is away once."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = asyncio.Event()
        self.asked = asyncio.Event()
        self.listings = 0

    async def listing(self, prefix: str) -> list[BlobInfo]:
        self.listings += 1
        if not self.refused.is_set():
            self.refused.set()
            raise UnavailableError("the store is away")
        self.asked.set()
        return await super().listing(prefix)


async def test_collection_that_failed_is_made_when_it_is_wanted_again() -> None:
    async with InMemoryBus() as bus:
        shelf = StoreFixture(bus)
        blobs = AwayStore()
        use = UsageCounter(blobs, shelf.references, Quota(0, 0))
        collection = GarbageCollector(blobs, shelf.references, use, list, GRACE)
        running = asyncio.create_task(collection.run())
        collection.request()
        async with asyncio.timeout(30):
            await blobs.refused.wait()

            collection.request()

            await blobs.asked.wait()
        assert not running.done()
        assert blobs.listings > 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_collection_that_failed_is_repeated_after_a_pause() -> None:
    async with InMemoryBus() as bus:
        shelf = StoreFixture(bus)
        blobs = AwayStore()
        use = UsageCounter(blobs, shelf.references, Quota(0, 0))
        collection = GarbageCollector(blobs, shelf.references, use, list, GRACE, timedelta(0))
        running = asyncio.create_task(collection.run())

        collection.request()

        async with asyncio.timeout(30):
            await blobs.asked.wait()
        assert not running.done()
        assert blobs.listings > 1
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


class TellingStore(InMemoryBlobStore):
    """Tells when something was deleted."""

    def __init__(self) -> None:
        super().__init__()
        self.deleted = asyncio.Event()

    async def delete(self, key: str) -> None:
        await super().delete(key)
        self.deleted.set()


async def test_what_was_too_young_is_collected_without_being_asked_for() -> None:
    async with InMemoryBus() as bus:
        shelf = StoreFixture(bus)
        blobs = TellingStore()
        use = UsageCounter(blobs, shelf.references, Quota(0, 0))
        grace = timedelta(milliseconds=50)
        collection = GarbageCollector(blobs, shelf.references, use, list, grace)
        key = await blobs.put(b"other")
        running = asyncio.create_task(collection.run())

        collection.request()

        async with asyncio.timeout(30):  # beside the grace, 2 s for clocks with whole seconds
            await blobs.deleted.wait()
        assert not await blobs.exists(key)
        assert not running.done()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_clock_that_is_set_ahead_makes_nothing_old() -> None:
    async with InMemoryBus() as bus:
        shelf = StoreFixture(bus)
        await shelf.collector.collect()
        key = await shelf.blobs.put(b"uploaded, and soon named")
        shelf.clock.step(2 * LONG_S)

        await shelf.collector.collect()

        assert await shelf.blobs.exists(key)
        shelf.clock.advance(LONG_S)
        await shelf.collector.collect()
        assert not await shelf.blobs.exists(key)
