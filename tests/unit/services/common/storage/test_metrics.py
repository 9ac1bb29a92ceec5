from pathlib import Path

import pytest

from svc_common.errors import NotFoundError
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.metrics import BlobMetrics, MeteredPresigningStore, with_metrics
from svc_common.storage.ports import PresignedUrls
from svc_common.storage.s3 import S3BlobStore
from svc_common.storage.s3_settings import S3Settings
from svc_common.telemetry.metrics import Registry


async def test_bytes_are_counted_both_ways(tmp_path: Path) -> None:
    metrics = BlobMetrics(Registry())
    store = with_metrics(InMemoryBlobStore(), metrics)
    key = await store.put(b"12345")
    (tmp_path / "file").write_bytes(b"123")
    await store.put_named_file("kind/id/file", tmp_path / "file")

    await store.get(key)
    await store.fetch(key, tmp_path / "copy")

    assert metrics.bytes.value("written") == 8
    assert metrics.bytes.value("read") == 10
    assert metrics.calls.value("put", "ok") == 2
    assert metrics.calls.value("get", "ok") == 2


async def test_missing_blob_is_counted_separately() -> None:
    metrics = BlobMetrics(Registry())

    with pytest.raises(NotFoundError):
        await with_metrics(InMemoryBlobStore(), metrics).get("kind/id/none")

    assert metrics.calls.value("get", "not_found") == 1


def test_presigned_urls_work_through_the_decorator() -> None:
    settings = S3Settings("http://127.0.0.1:1", "key", "secret")

    store = with_metrics(S3BlobStore(settings), BlobMetrics(Registry()))

    assert isinstance(store, MeteredPresigningStore)
    assert isinstance(store, PresignedUrls)
    assert not isinstance(with_metrics(InMemoryBlobStore(), BlobMetrics(Registry())), PresignedUrls)
