"""Usage of the byte store, and collections on request."""

import pytest

from svc_common.errors import InvalidArgumentError, NotFoundError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.blobs.usage import BlobUsage
from svc_manager.usecases.storage import Storage
from tests.unit.services.manager.storing import GRACE, StoreFixture, digest


async def storage_with_blobs(bus: InMemoryBus) -> tuple[StoreFixture, Storage]:
    """Two experiments, which name 4 and 2 bytes, and 3 bytes that no log names."""
    store = StoreFixture(bus)
    for content in (b"long", b"ab", b"xyz"):
        await store.blobs.put(content)
    await store.log("e1", digest(b"ab"))
    await store.log("e2", digest(b"long"))
    storage = Storage(store.use, store.collector, store.references, code_travels=True)
    return store, storage


async def test_usage_lists_experiments_by_size() -> None:
    async with InMemoryBus() as bus:
        _, storage = await storage_with_blobs(bus)

        usage = await storage.usage()

    assert usage.total == BlobUsage(9, 3)
    assert usage.experiments == (("e2", BlobUsage(4, 1)), ("e1", BlobUsage(2, 1)))


async def test_usage_of_one_experiment_keeps_the_total() -> None:
    async with InMemoryBus() as bus:
        _, storage = await storage_with_blobs(bus)

        usage = await storage.usage("e1")

        with pytest.raises(NotFoundError):
            await storage.usage("unknown1")
    assert usage.total == BlobUsage(9, 3)
    assert usage.experiments == (("e1", BlobUsage(2, 1)),)


async def test_a_dry_run_deletes_nothing() -> None:
    async with InMemoryBus() as bus:
        store, storage = await storage_with_blobs(bus)
        store.clock.advance(GRACE.total_seconds() + 10)

        result = await storage.clean(dry_run=True, grace_ms=None)

        assert [blob.size_bytes for blob in result.deleted] == [3]
        assert (await storage.usage()).total == BlobUsage(9, 3)


async def test_the_grace_of_a_request_overrides_the_configured_one() -> None:
    async with InMemoryBus() as bus:
        store, storage = await storage_with_blobs(bus)
        store.clock.advance(60)

        kept = await storage.clean(dry_run=False, grace_ms=None)
        result = await storage.clean(dry_run=False, grace_ms=30_000)

    assert kept.deleted == ()
    assert result.deleted_bytes == 3


@pytest.mark.parametrize("grace_ms", [-1, 10**15])
async def test_a_grace_out_of_range_is_refused(grace_ms: int) -> None:
    async with InMemoryBus() as bus:
        _, storage = await storage_with_blobs(bus)

        with pytest.raises(InvalidArgumentError, match="grace must be 0 to"):
            await storage.clean(dry_run=True, grace_ms=grace_ms)
