from svc_common.clock import ManualClock
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.adapters.blob_views import BlobViews
from svc_manager.domain.garbage import OWNED_KINDS


async def test_a_view_lies_below_a_kind_that_the_garbage_collector_knows() -> None:
    blobs = InMemoryBlobStore(ManualClock())

    await BlobViews(blobs).put("abcd1234", 2**40, b"view")

    (key,) = await blobs.keys("summary/")
    assert key.split("/")[0] in OWNED_KINDS
    assert key.split("/")[1] == "abcd1234"
    assert await BlobViews(blobs).get(["abcd1234", "other123"]) == {"abcd1234": (2**40, b"view")}
