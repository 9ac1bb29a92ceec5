"""Upload of a client's code into the blob store through the manager's servicer."""

from __future__ import annotations

import asyncio
import tarfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration

from nni.errors import NniError
from nni.experiment.byte_client import upload_code
from nni.experiment.client import ManagerClient
from nni.experiment.endpoint import Endpoint
from nni.experiment.errors import ConfigError
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.ports import BlobStore
from svc_common.storage.s3 import S3BlobStore
from svc_manager.domain.quota import Quota
from tests.support.byte_service import NO_QUOTA, byte_service
from tests.support.ports import free_port
from tests.support.stores import S3Server
from tests.unit.services.manager.storing import SignedUrls


@asynccontextmanager
async def client_of(blobs: BlobStore, quota: Quota = NO_QUOTA) -> AsyncIterator[ManagerClient]:
    async with InMemoryBus() as bus, byte_service(bus, blobs, quota) as address:
        with ManagerClient(Endpoint("", 0, "", "", address, "", "token")) as client:
            yield client


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "code"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "model.py").write_text("x = 1")
    (folder / "data.bin").write_bytes(b"0" * 10)
    (folder / ".nniignore").write_text("*.bin")
    return folder


async def names(blobs: BlobStore, sha256: str, folder: Path) -> list[str]:
    await blobs.fetch(f"sha256/{sha256}", folder / "code.tgz")
    with tarfile.open(folder / "code.tgz") as tar:
        return tar.getnames()


async def test_code_is_uploaded_through_the_manager_without_presigned_urls(
    tmp_path: Path, code: Path
) -> None:
    blobs = InMemoryBlobStore()
    async with client_of(blobs) as client:
        first = await asyncio.to_thread(upload_code, client, code)
        again = await asyncio.to_thread(upload_code, client, code)

    assert await names(blobs, first.sha256, tmp_path) == [".nniignore", "deep/model.py"]
    assert again == first


async def test_code_is_uploaded_directly_to_the_store(
    shared_s3: S3Server, tmp_path: Path, code: Path
) -> None:
    async with S3BlobStore(shared_s3.settings(f"code/{tmp_path.name}/")) as blobs:
        await blobs.put(b"the bucket exists")
        async with client_of(blobs) as client:
            blob = await asyncio.to_thread(upload_code, client, code)

        assert ".nniignore" in await names(blobs, blob.sha256, tmp_path)
        assert (await blobs.info(f"sha256/{blob.sha256}")).size_bytes == blob.size_bytes


class UrlsOfElsewhere(InMemoryBlobStore, SignedUrls):
    """`BlobStore` whose presigned URLs are unreachable."""

    async def put_url(self, key: str, lifetime: object, size_bytes: int | None = None) -> str:
        return f"http://127.0.0.1:{free_port()}/{key}"


async def test_code_is_uploaded_through_the_manager_if_the_store_is_unreachable(
    tmp_path: Path, code: Path
) -> None:
    blobs = UrlsOfElsewhere()
    async with client_of(blobs) as client:
        blob = await asyncio.to_thread(upload_code, client, code)

    assert await blobs.exists(f"sha256/{blob.sha256}")


async def test_code_over_the_quota_is_refused_with_the_remedy(code: Path) -> None:
    async with client_of(InMemoryBlobStore(), Quota(10, 0)) as client:
        with pytest.raises(NniError, match="NNI_QUOTA_BYTES"):
            await asyncio.to_thread(upload_code, client, code)


async def test_usage_and_garbage_are_reported() -> None:
    blobs = InMemoryBlobStore()
    key = await blobs.put(b"orphaned")
    async with client_of(blobs) as client:
        usage = await asyncio.to_thread(client.usage)
        dry = await asyncio.to_thread(lambda: client.collect_garbage(dry_run=True))
        wet = await asyncio.to_thread(lambda: client.collect_garbage(dry_run=False))
        with pytest.raises(NniError, match="no experiment"):
            await asyncio.to_thread(client.usage, "none")

    assert (usage.used_bytes, usage.blob_count) == (8, 1)
    assert list(dry.keys) == list(wet.keys) == [key]
    assert not await blobs.exists(key)


@pytest.mark.claim("platform", 75)
async def test_too_many_files_are_refused_until_some_are_ignored(code: Path) -> None:
    (code / "many").mkdir()
    for number in range(2001):
        (code / "many" / f"{number}.txt").touch()
    async with client_of(InMemoryBlobStore()) as client:
        with pytest.raises(ConfigError, match="must have at most 2000 files"):
            await asyncio.to_thread(upload_code, client, code)
        (code / ".nniignore").write_text("many/\n")

        blob = await asyncio.to_thread(upload_code, client, code)

    assert blob.size_bytes > 0


@pytest.mark.parametrize("seconds", [-1, 10**11])
async def test_senseless_grace_is_refused(seconds: int) -> None:
    async with client_of(InMemoryBlobStore()) as client:
        with pytest.raises(NniError, match="grace must be 0"):
            await asyncio.to_thread(
                lambda: client.collect_garbage(dry_run=True, grace=Duration(seconds=seconds))
            )
