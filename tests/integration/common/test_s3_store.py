"""Behaviour specific to the S3 store, on a real server."""

import asyncio
import hashlib
import io
import os
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path, PosixPath
from typing import Any

import httpx
import pytest
from minio import Minio

from svc_common.errors import (
    AbortedError,
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from svc_common.storage.ports import ContentMismatchError
from svc_common.storage.s3 import PART_BYTES, S3BlobStore
from svc_common.storage.s3_settings import S3Settings
from tests.support.stores import S3Server

HOUR = timedelta(hours=1)


@pytest.fixture
def settings(shared_s3: S3Server, tmp_path: Path) -> S3Settings:
    return shared_s3.settings(f"integration/{tmp_path.name}/")


@pytest.fixture
async def store(settings: S3Settings) -> AsyncIterator[S3BlobStore]:
    async with S3BlobStore(settings) as opened:
        yield opened


def raw_client(settings: S3Settings) -> Minio:
    return Minio(
        settings.address,
        access_key=settings.access_key,
        secret_key=settings.secret_key,
        secure=False,
        region=settings.region,
    )


def unfinished_uploads(settings: S3Settings) -> int:
    answer = raw_client(settings)._list_multipart_uploads(settings.bucket)
    return len(answer.uploads)


async def test_large_file_is_uploaded_in_parts_and_downloaded(
    store: S3BlobStore, settings: S3Settings, tmp_path: Path
) -> None:
    content = os.urandom(2 * PART_BYTES + 12_345)
    (tmp_path / "in").write_bytes(content)

    key = await store.put_file(tmp_path / "in")
    await store.fetch(key, tmp_path / "out")

    assert key == f"sha256/{hashlib.sha256(content).hexdigest()}"
    assert (tmp_path / "out").read_bytes() == content
    found = raw_client(settings).stat_object(settings.bucket, settings.prefix + key)
    assert found.etag is not None
    assert found.etag.endswith("-3"), "the tag of an upload in three parts"


class RestlessPath(PosixPath):
    """Path of a file that changes before each time it is opened."""

    def open(self, *args: Any, **kwargs: Any) -> Any:
        with Path(self).open("r+b") as file:
            file.write(os.urandom(16))
        return super().open(*args, **kwargs)


async def test_file_that_keeps_changing_is_refused_and_leaves_nothing(
    store: S3BlobStore, settings: S3Settings, tmp_path: Path
) -> None:
    file = RestlessPath(tmp_path / "growing")
    Path(file).write_bytes(b"a" * (PART_BYTES + 1))
    await store.put(b"the bucket exists")

    with pytest.raises(AbortedError, match="being written to"):
        await store.put_file(file)

    assert await store.keys("sha256/") == [
        f"sha256/{hashlib.sha256(b'the bucket exists').hexdigest()}"
    ]
    assert unfinished_uploads(settings) == 0


async def test_damaged_named_blob_is_data_loss(store: S3BlobStore, settings: S3Settings) -> None:
    await store.put_named("snapshot/e1/state", b"whole")
    good = raw_client(settings).stat_object(settings.bucket, settings.prefix + "snapshot/e1/state")
    assert good.metadata is not None
    digest = good.metadata["x-amz-meta-sha256"]
    raw_client(settings).put_object(
        settings.bucket,
        settings.prefix + "snapshot/e1/state",
        io.BytesIO(b"wh0le"),
        5,
        metadata={"x-amz-meta-sha256": digest},
    )

    with pytest.raises(DataLossError):
        await store.get("snapshot/e1/state")


async def test_missing_bucket_is_created_by_the_first_write(
    shared_s3: S3Server, tmp_path: Path
) -> None:
    settings = shared_s3.settings(bucket="made-when-needed")
    async with S3BlobStore(settings) as store:
        assert not await store.exists("k/1")
        assert await store.keys("k/") == []
        await store.delete("k/1")

        await store.put_named("k/1", b"x")

        assert await store.get("k/1") == b"x"


async def test_urls_work_without_credentials_until_they_expire(
    store: S3BlobStore, settings: S3Settings
) -> None:
    await store.put_named("k/1", b"there")
    async with httpx.AsyncClient(timeout=60) as client:
        written = await client.put(await store.put_url("k/2", HOUR), content=b"from a runner")
        read = await client.get(await store.get_url("k/1", HOUR))
        other_method = await client.put(await store.get_url("k/1", HOUR), content=b"no")
        other_key = await client.get((await store.get_url("k/1", HOUR)).replace("k/1", "k/2"))

    assert (written.status_code, read.status_code, read.content) == (200, 200, b"there")
    assert await store.get("k/2") == b"from a runner"
    assert (other_method.status_code, other_key.status_code) == (403, 403)
    assert settings.secret_key not in str(read.url)


@pytest.mark.parametrize("lifetime", [timedelta(0), timedelta(days=7, seconds=1)])
async def test_lifetime_of_a_url_is_bounded(store: S3BlobStore, lifetime: timedelta) -> None:
    with pytest.raises(InvalidArgumentError, match="lifetime must be"):
        await store.get_url("k/1", lifetime)


async def test_upload_through_a_url_under_a_wrong_hash_is_data_loss(store: S3BlobStore) -> None:
    key = f"sha256/{'0' * 64}"
    await store.put(b"the bucket exists")
    async with httpx.AsyncClient(timeout=60) as client:
        await client.put(await store.put_url(key, HOUR), content=b"malice")

    with pytest.raises(DataLossError):
        await store.get(key)


async def put(url: str, data: bytes, **headers: str) -> int:
    """PUT as agents do; return the status."""
    async with httpx.AsyncClient(timeout=60) as client:
        return (await client.put(url, content=data, headers=headers)).status_code


async def test_url_of_one_size_takes_no_other_size(store: S3BlobStore) -> None:
    await store.put(b"the bucket exists")
    url = await store.put_url("staging/name/1", HOUR, 4)

    refused = [await put(url, data) for data in (b"", b"abc", b"abcde", b"x" * 100_000)]

    assert refused == [403] * 4
    assert await store.keys("staging/") == []
    assert await put(url, b"abcd") == 200
    assert await store.get("staging/name/1") == b"abcd"


async def test_uploaded_content_is_taken_once_it_is_right(store: S3BlobStore) -> None:
    content = os.urandom(100_000)
    digest = hashlib.sha256(content).hexdigest()
    await store.put(b"the bucket exists")
    url = await store.put_url("staging/1", HOUR, len(content))

    assert await put(url, content) == 200
    await store.take("staging/1", f"sha256/{digest}", digest, len(content))

    assert await store.get(f"sha256/{digest}") == content
    assert await store.keys("staging/") == []
    with pytest.raises(NotFoundError):
        await store.take("staging/1", f"sha256/{digest}", digest, len(content))


@pytest.mark.parametrize("data", [b"evil", b"good!"])
async def test_other_content_is_deleted_and_harms_no_blob(store: S3BlobStore, data: bytes) -> None:
    key = await store.put(b"good")
    digest = key.removeprefix("sha256/")
    # Claims of the uploader about the hash are not believed.
    url = await store.put_url("staging/1", HOUR)
    assert await put(url, data, **{"x-amz-meta-sha256": digest}) in {200, 403}
    await store.put_named("staging/1", data)

    with pytest.raises(ContentMismatchError, match="were announced"):
        await store.take("staging/1", key, digest, 4)

    assert await store.get(key) == b"good"
    assert await store.keys("staging/") == []


async def test_wrong_secret_is_explained(settings: S3Settings) -> None:
    wrong = S3Settings(settings.endpoint, settings.access_key, "wrong", settings.bucket)
    async with S3BlobStore(wrong) as store:
        with pytest.raises(PermissionDeniedError, match="check NNI_S3_ACCESS_KEY"):
            await store.put_named("k/1", b"x")


async def test_installations_that_share_a_bucket_do_not_meet(
    store: S3BlobStore, settings: S3Settings
) -> None:
    other = S3Settings(
        settings.endpoint, settings.access_key, settings.secret_key, settings.bucket, "other/"
    )
    await store.put_named("k/mine", b"x")
    async with S3BlobStore(other) as theirs:
        assert await theirs.keys("k/") == []
        assert not await theirs.exists("k/mine")


async def test_truncated_content_of_another_writer_is_stored_again(
    store: S3BlobStore, settings: S3Settings
) -> None:
    content = b"x" * 100_000
    key = await store.put(content)
    raw_client(settings).put_object(settings.bucket, settings.prefix + key, io.BytesIO(b"short"), 5)

    await store.put(content)

    assert await store.get(key) == content


async def test_old_content_is_uploaded_again_to_reset_its_age(
    store: S3BlobStore, settings: S3Settings
) -> None:
    content = b"y" * 100_000
    key = await store.put(content)
    before = (await store.info(key)).stored_at
    await asyncio.sleep(1.1)  # the server returns ages in whole seconds

    async with S3BlobStore(settings, refresh_after=timedelta(0)) as later:
        await later.put(content)

    assert (await store.info(key)).stored_at > before


async def test_named_file_that_keeps_changing_is_refused(
    store: S3BlobStore, tmp_path: Path
) -> None:
    path = RestlessPath(tmp_path / "file")
    Path(path).write_bytes(b"0" * 20)

    with pytest.raises(AbortedError, match="being written to"):
        await store.put_named_file("output/e/t/1/stdout", path)

    assert await store.keys("output/") == []
