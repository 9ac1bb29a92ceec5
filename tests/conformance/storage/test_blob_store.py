"""Conformance suite of `BlobStore`."""

import asyncio
import hashlib
import itertools
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from svc_common.clock import ManualClock
from svc_common.errors import DataLossError, InvalidArgumentError, NotFoundError
from svc_common.storage.directory import DirectoryBlobStore
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.metrics import BlobMetrics, with_metrics
from svc_common.storage.ports import BlobStore
from svc_common.storage.retries import RetryingBlobStore
from svc_common.storage.s3 import S3BlobStore
from svc_common.telemetry.metrics import Registry
from tests.support.stores import S3Server

_numbers = itertools.count(1)


@pytest.fixture(params=["memory", "directory", "retrying", "metered", "s3"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BlobStore]:
    if request.param == "memory":
        yield InMemoryBlobStore()
        return
    if request.param == "directory":
        yield DirectoryBlobStore(tmp_path / "blobs")
        return
    if request.param == "retrying":
        yield RetryingBlobStore(InMemoryBlobStore(), ManualClock())
        return
    if request.param == "metered":
        yield with_metrics(InMemoryBlobStore(), BlobMetrics(Registry()))
        return
    server: S3Server = request.getfixturevalue("shared_s3")
    async with S3BlobStore(server.settings(f"conformance/{next(_numbers)}/")) as opened:
        yield opened


async def test_content_is_addressed_by_its_hash(store: BlobStore) -> None:
    key = await store.put(b"hello")

    assert key == f"sha256/{hashlib.sha256(b'hello').hexdigest()}"
    assert await store.get(key) == b"hello"
    assert await store.put(b"hello") == key


async def test_file_has_the_key_of_its_content(store: BlobStore, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"x" * 3_000_000)

    key = await store.put_file(file)

    assert key == await store.put(b"x" * 3_000_000)


async def test_named_blob_can_be_replaced(store: BlobStore) -> None:
    await store.put_named("snapshot/e1/manager", b"old")
    await store.put_named("snapshot/e1/manager", b"new")

    assert await store.get("snapshot/e1/manager") == b"new"


async def test_empty_blob_is_a_blob(store: BlobStore, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()

    key = await store.put_file(tmp_path / "empty")

    assert await store.exists(key)
    assert await store.get(key) == b""


async def test_missing_blob_is_not_found(store: BlobStore, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError):
        await store.get("snapshot/none")
    with pytest.raises(NotFoundError):
        await store.fetch("snapshot/none", tmp_path / "out")

    assert not (tmp_path / "out").exists()
    assert not await store.exists("snapshot/none")


async def test_fetch_writes_a_file_in_a_new_folder(store: BlobStore, tmp_path: Path) -> None:
    key = await store.put(b"code")

    await store.fetch(key, tmp_path / "deep" / "er" / "file")

    assert (tmp_path / "deep" / "er" / "file").read_bytes() == b"code"


async def test_content_that_does_not_match_its_key_is_data_loss(
    store: BlobStore, tmp_path: Path
) -> None:
    key = await store.put(b"what was stored")
    await store.put_named(key, b"something else")

    with pytest.raises(DataLossError, match="damaged"):
        await store.get(key)
    with pytest.raises(DataLossError):
        await store.fetch(key, tmp_path / "out")

    assert not (tmp_path / "out").exists()


async def test_deleted_blob_is_gone(store: BlobStore) -> None:
    await store.put_named("logs/e1/a", b"x")

    await store.delete("logs/e1/a")
    await store.delete("logs/e1/a")

    assert not await store.exists("logs/e1/a")


async def test_keys_below_a_prefix_are_listed_in_order(store: BlobStore) -> None:
    for key in ("logs/e1/b", "logs/e1/a/deep", "logs/e2/c", "logs/e10/d"):
        await store.put_named(key, b"x")

    assert await store.keys("logs/e1/") == ["logs/e1/a/deep", "logs/e1/b"]
    assert await store.keys("nothing/") == []


@pytest.mark.parametrize(
    "key",
    ["", "one", "/etc/passwd", "a/../b", "a/.hidden", "a//b", "a/b/", "a/b\n", "a/" + "b" * 600],
)
async def test_key_that_could_leave_the_store_is_refused(store: BlobStore, key: str) -> None:
    with pytest.raises(InvalidArgumentError, match="key must be"):
        await store.put_named(key, b"x")
    with pytest.raises(InvalidArgumentError):
        await store.get(key)


async def test_prefix_without_its_slash_is_refused(store: BlobStore) -> None:
    with pytest.raises(InvalidArgumentError, match="prefix must end"):
        await store.keys("logs/e1")


async def test_concurrent_writers_of_one_blob_leave_one_complete(store: BlobStore) -> None:
    blobs = [bytes([number]) * 100_000 for number in range(20)]

    await asyncio.gather(*(store.put_named("k/1", blob) for blob in blobs))

    assert await store.get("k/1") in blobs
    assert await store.keys("k/") == ["k/1"]


async def test_named_file_replaces_an_existing_blob(store: BlobStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 3_000_000)
    await store.put_named("output/e1/t1/1/stdout", b"old")

    await store.put_named_file("output/e1/t1/1/stdout", tmp_path / "file")

    assert await store.get("output/e1/t1/1/stdout") == b"x" * 3_000_000


async def test_listing_has_size_and_age(store: BlobStore) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)
    await store.put_named("logs/e1/b", b"four")
    await store.put_named("logs/e1/a/deep", b"")

    deep, other = await store.listing("logs/e1/")

    assert (deep.key, deep.size_bytes) == ("logs/e1/a/deep", 0)
    assert (other.key, other.size_bytes) == ("logs/e1/b", 4)
    assert before < other.stored_at < datetime.now(UTC) + timedelta(seconds=2)
    info = await store.info("logs/e1/b")
    assert info.size_bytes == 4
    assert abs(info.stored_at - other.stored_at) < timedelta(seconds=1)


async def test_missing_blob_has_no_info(store: BlobStore) -> None:
    with pytest.raises(NotFoundError):
        await store.info("logs/e1/none")


async def test_empty_store_lists_nothing(store: BlobStore) -> None:
    assert await store.listing("nothing/") == []
