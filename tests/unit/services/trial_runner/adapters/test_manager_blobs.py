"""Blob transfers through the manager."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from nni_proto.bytes.v1 import byte_service_pb2 as pb
from nni_proto.bytes.v1 import byte_service_pb2_grpc as pb_grpc
from svc_common.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
)
from svc_common.messaging.memory import InMemoryBus
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.domain.quota import Quota
from svc_trial_runner.adapters.manager_blobs import SMALL_OUTPUT_BYTES, ManagerBlobExchange
from svc_trial_runner.domain.claims import AttemptKey
from tests.support.byte_service import NAME, byte_channel, write
from tests.support.ports import free_port

ATTEMPT = AttemptKey("e1", "t1", 1)


class ElsewhereStore(InMemoryBlobStore):
    """Store whose presigned URLs lead nowhere from this machine."""

    def __init__(self) -> None:
        super().__init__()
        self.prepared: list[str] = []
        """Keys for whose upload a URL was requested."""

    async def get_url(self, key: str, lifetime: timedelta) -> str:
        return f"http://127.0.0.1:1/{key}"

    async def put_url(self, key: str, lifetime: timedelta, size_bytes: int | None = None) -> str:
        self.prepared.append(key)
        return f"http://127.0.0.1:1/{key}"

    async def take(self, staged: str, key: str, sha256: str, size_bytes: int) -> None:
        raise AssertionError("nothing was sent to the URL")


async def test_unavailable_manager_is_an_error() -> None:
    async with open_channel(f"127.0.0.1:{free_port()}") as channel:
        with pytest.raises(UnavailableError):
            await ManagerBlobExchange(channel, ()).put(b"x")


async def test_quota_of_the_experiment_reaches_the_agent(tmp_path: Path) -> None:
    checkpoint = write(tmp_path / "file", b"12345")
    store = InMemoryBlobStore()
    async with InMemoryBus() as bus, byte_channel(bus, store, Quota(0, 4)) as channel:
        exchange = ManagerBlobExchange(channel, ())

        with pytest.raises(ResourceExhaustedError, match="NNI_EXPERIMENT_QUOTA_BYTES"):
            await exchange.of_attempt(ATTEMPT, checkpoints=True).put_file(checkpoint)

        assert await exchange.put_file(checkpoint)
        assert await exchange.of_attempt(ATTEMPT).put_file(checkpoint)


async def test_agents_write_named_outputs_only(tmp_path: Path) -> None:
    async with open_channel(f"127.0.0.1:{free_port()}") as channel:
        exchange = ManagerBlobExchange(channel, ())

        for key in ("snapshot/e1/state", "summary/e1/7", "output/e1/t1/stdout", "sha256/abc"):
            with pytest.raises(InvalidArgumentError):
                await exchange.put_named(key, b"x")


async def test_content_comes_back_by_its_hash(tmp_path: Path) -> None:
    async with InMemoryBus() as bus, byte_channel(bus, InMemoryBlobStore()) as channel:
        exchange = ManagerBlobExchange(channel, ())

        key = await exchange.put(b"content")
        again = await exchange.put(b"content")
        await exchange.fetch(key, tmp_path / "new" / "file")

        assert again == key
        assert await exchange.get(key) == b"content"
        assert (tmp_path / "new" / "file").read_bytes() == b"content"
        assert await exchange.exists(key)
        assert not await exchange.exists(f"sha256/{'0' * 64}")


async def test_output_of_a_trial_is_stored_under_its_name(tmp_path: Path) -> None:
    store = InMemoryBlobStore()
    async with InMemoryBus() as bus, byte_channel(bus, store) as channel:
        path = write(tmp_path / "file", b"line")

        await ManagerBlobExchange(channel, ()).put_named_file("output/e1/t1/2/stdout", path)

    assert await store.get("output/e1/t1/2/stdout") == b"line"


async def test_content_goes_through_the_manager_where_the_store_cannot_be_reached() -> None:
    async with InMemoryBus() as bus, byte_channel(bus, ElsewhereStore()) as channel:
        with pytest.raises(UnavailableError):
            await ManagerBlobExchange(channel, ()).put(b"content")
        exchange = ManagerBlobExchange(channel, (), by_url=False).of_attempt(ATTEMPT)

        key = await exchange.put(b"content")

        assert await exchange.get(key) == b"content"


@pytest.mark.parametrize("size_bytes", [0, SMALL_OUTPUT_BYTES, SMALL_OUTPUT_BYTES + 1])
async def test_output_of_any_size_goes_through_the_manager(tmp_path: Path, size_bytes: int) -> None:
    store = ElsewhereStore()
    async with InMemoryBus() as bus, byte_channel(bus, store) as channel:
        exchange = ManagerBlobExchange(channel, (), by_url=False)
        path = write(tmp_path / "file", bytes(size_bytes))

        await exchange.put_named_file("output/e1/t1/2/files.tar", path)

    assert await store.get("output/e1/t1/2/files.tar") == bytes(size_bytes)


@pytest.mark.parametrize(
    ("size_bytes", "prepared"), [(SMALL_OUTPUT_BYTES, 0), (SMALL_OUTPUT_BYTES + 1, 1)]
)
async def test_small_output_is_sent_without_a_request_before(
    tmp_path: Path, size_bytes: int, prepared: int
) -> None:
    store = ElsewhereStore()
    async with InMemoryBus() as bus, byte_channel(bus, store) as channel:
        exchange = ManagerBlobExchange(channel, (), by_url=False)
        path = write(tmp_path / "file", bytes(size_bytes))

        await exchange.put_named_file("output/e1/t1/2/files.tar", path)

    assert len(store.prepared) == prepared


async def test_quota_refuses_an_output_that_is_sent_at_once(tmp_path: Path) -> None:
    store = ElsewhereStore()
    async with InMemoryBus() as bus, byte_channel(bus, store, Quota(0, 4)) as channel:
        exchange = ManagerBlobExchange(channel, (), by_url=False)
        path = write(tmp_path / "file", b"12345")

        with pytest.raises(ResourceExhaustedError, match="NNI_EXPERIMENT_QUOTA_BYTES"):
            await exchange.put_named_file("output/e1/t1/2/files.tar", path)


@pytest.mark.parametrize("by_url", [True, False])
async def test_link_or_pipe_in_place_of_an_output_is_refused(
    tmp_path: Path, *, by_url: bool
) -> None:
    write(tmp_path / "secret", b"of the agent")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    store = InMemoryBlobStore()
    async with InMemoryBus() as bus, byte_channel(bus, store) as channel:
        exchange = ManagerBlobExchange(channel, (), by_url=by_url)

        for name in ("link", "pipe", "folder", "missing"):
            with pytest.raises(FailedPreconditionError, match="is no"):
                await exchange.put_named_file("output/e1/t1/2/stdout", tmp_path / name)

    assert await store.keys("output/") == []


class RecordingByteService(pb_grpc.ByteServiceServicer):
    """`ByteService` that records what it is asked, and stores nothing itself."""

    def __init__(self) -> None:
        self.requests: list[Any] = []
        self.tokens: set[object] = set()
        self.limits_s: list[float] = []
        self.stored = False
        """Whether the content of an upload is known already."""
        self.pieces: list[bytes] = []
        """Content of every download."""

    def _note(self, request: Any, context: Any) -> None:
        self.requests.append(request)
        self.tokens.add(dict(context.invocation_metadata()).get("authorization"))
        self.limits_s.append(context.time_remaining())

    async def PrepareUpload(self, request: Any, context: Any) -> pb.PrepareUploadResponse:
        self._note(request, context)
        key = f"sha256/{request.blob.sha256}"
        if self.stored:
            return pb.PrepareUploadResponse(key=key, stored=True)
        return pb.PrepareUploadResponse(key=key, url="http://127.0.0.1:1/")

    async def Upload(self, requests: Any, context: Any) -> pb.UploadResponse:
        async for request in requests:
            self._note(request, context)
        return pb.UploadResponse()

    async def PrepareDownload(self, request: Any, context: Any) -> pb.PrepareDownloadResponse:
        self._note(request, context)
        return pb.PrepareDownloadResponse(url="http://127.0.0.1:1/")

    async def Download(self, request: Any, context: Any) -> AsyncIterator[pb.DownloadResponse]:
        self._note(request, context)
        for piece in self.pieces:
            yield pb.DownloadResponse(data=piece)


@asynccontextmanager
async def recorded() -> AsyncIterator[tuple[RecordingByteService, ManagerBlobExchange]]:
    """Yield a recording manager, and the exchange of an attempt far from the store with it."""
    service = RecordingByteService()  # type: ignore[abstract] # nothing calls the other methods
    server = GrpcServer([NAME], None)
    server.register(lambda raw: pb_grpc.add_ByteServiceServicer_to_server(service, raw))
    port = await server.start()
    try:
        async with open_channel(f"127.0.0.1:{port}") as channel:
            metadata = (("authorization", "Bearer token"),)
            common = ManagerBlobExchange(channel, metadata, by_url=False)
            yield service, common.of_attempt(ATTEMPT)
    finally:
        await server.stop(1)


SHA256 = "ed7002b439e9ac845f22357d822bac1444730fbdb6016d3ec9432297b9ec9f73"
"""Of the text `content`."""


async def test_upload_names_the_attempt_its_purpose_and_its_content() -> None:
    async with recorded() as (service, exchange):
        key = await exchange.put(b"content")

    header, first, *rest = service.requests
    assert key == f"sha256/{SHA256}"
    assert (header.experiment_id, header.trial_id, header.attempt) == ATTEMPT
    assert header.purpose == pb.BLOB_PURPOSE_VALUE
    assert (header.blob.sha256, header.blob.size_bytes) == (SHA256, 7)
    assert first.header == header
    assert b"".join(one.data for one in (first, *rest)) == b"content"
    assert service.tokens == {"Bearer token"}


async def test_content_that_is_stored_already_is_not_sent() -> None:
    async with recorded() as (service, exchange):
        service.stored = True
        key = await exchange.put(b"content")

    assert key == f"sha256/{SHA256}"
    assert len(service.requests) == 1


async def test_output_names_its_attempt_and_file(tmp_path: Path) -> None:
    async with recorded() as (service, exchange):
        await exchange.put_named("output/e2/t2/12/stdout", b"content")
        await exchange.put_named_file("output/e2/t2/12/stdout", write(tmp_path / "x", b"content"))

    headers = [service.requests[0], service.requests[-1].header]
    for header in headers:
        assert header.purpose == pb.BLOB_PURPOSE_OUTPUT
        assert (header.experiment_id, header.trial_id, header.attempt) == ("e2", "t2", 12)
        assert (header.file_name, header.blob.size_bytes) == ("stdout", 7)
        assert header.blob.sha256 == SHA256
    assert service.requests[-1].data == b"content"


async def test_download_names_the_attempt_and_joins_the_pieces(tmp_path: Path) -> None:
    async with recorded() as (service, exchange):
        service.pieces = [b"con", b"", b"tent"]
        content = await exchange.get(f"sha256/{SHA256}")
        await exchange.fetch(f"sha256/{SHA256}", tmp_path / "file")

    assert content == (tmp_path / "file").read_bytes() == b"content"
    for request in service.requests:
        assert (request.key, request.experiment_id, request.trial_id) == (
            f"sha256/{SHA256}",
            *ATTEMPT[:2],
        )
    assert service.tokens == {"Bearer token"}


async def test_content_that_differs_from_its_hash_is_refused(tmp_path: Path) -> None:
    async with recorded() as (service, exchange):
        service.pieces = [b"another"]

        with pytest.raises(DataLossError):
            await exchange.get(f"sha256/{SHA256}")
        with pytest.raises(DataLossError):
            await exchange.fetch(f"sha256/{SHA256}", tmp_path / "file")

    assert list(tmp_path.iterdir()) == []


async def test_every_call_has_a_time_limit() -> None:
    async with recorded() as (service, exchange):
        service.pieces = [b"content"]
        await exchange.put(b"content")
        await exchange.get(f"sha256/{SHA256}")

    assert len(service.limits_s) == len(service.requests)
    assert all(0 < limit_s < 3700 for limit_s in service.limits_s)


async def test_folder_that_cannot_be_made_is_an_error_of_the_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    async with recorded() as (service, exchange):
        service.pieces = [b"content"]

        with pytest.raises(UnavailableError, match="the blob store cannot be used"):
            await exchange.fetch(f"sha256/{SHA256}", tmp_path / "file" / "below")
