"""The clock of the in-memory store; `tests/conformance/storage` has the rest."""

from svc_common.clock import ManualClock
from svc_common.storage.memory import InMemoryBlobStore


async def test_times_of_storing_are_those_of_the_clock() -> None:
    clock = ManualClock()
    store = InMemoryBlobStore(clock)
    key = await store.put(b"x")
    first = (await store.info(key)).stored_at

    clock.advance(60.0)
    await store.put(b"x")

    assert first == ManualClock().now()
    assert (await store.info(key)).stored_at == clock.now()


async def test_deleted_blob_has_no_time() -> None:
    store = InMemoryBlobStore(ManualClock())
    key = await store.put(b"x")

    await store.delete(key)

    assert await store.listing("sha256/") == []
