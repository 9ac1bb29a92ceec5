import pytest

from svc_common.clock import ManualClock
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.domain.garbage import TOMBSTONE_KIND
from svc_manager.event_log.tombstones import Tombstone, Tombstones


@pytest.fixture
def blobs() -> InMemoryBlobStore:
    return InMemoryBlobStore(ManualClock())


async def test_a_deletion_is_found_by_its_request(blobs: InMemoryBlobStore) -> None:
    await Tombstones(blobs).put("r1", Tombstone("abcd1234", 17))

    assert await Tombstones(blobs).get("r1") == Tombstone("abcd1234", 17)
    assert await Tombstones(blobs).get("r2") is None


async def test_the_latest_deletion_of_a_request_counts(blobs: InMemoryBlobStore) -> None:
    tombstones = Tombstones(blobs)

    await tombstones.put("r1", Tombstone("abcd1234", 17))
    await tombstones.put("r1", Tombstone("abcd1234", 21))

    assert await tombstones.get("r1") == Tombstone("abcd1234", 21)


@pytest.mark.parametrize("request_id", ["../../etc", "a b\n", "é" * 500, "\udc80"])
async def test_any_request_id_makes_a_valid_key(blobs: InMemoryBlobStore, request_id: str) -> None:
    await Tombstones(blobs).put(request_id, Tombstone("abcd1234", 1))

    (key,) = await blobs.keys(f"{TOMBSTONE_KIND}/")
    assert len(key) == len(TOMBSTONE_KIND) + 1 + 32
