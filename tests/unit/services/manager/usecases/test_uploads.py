from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from svc_common.access.current_call import serving
from svc_common.access.roles import Caller, Role
from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
)
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.ports import REFRESH_AFTER
from svc_manager.domain.quota import Quota
from svc_manager.usecases.uploads import (
    ALL_IN_MEMORY_BYTES,
    BLOB_LIMIT_BYTES,
    CODE_LIMIT_BYTES,
    IN_MEMORY_BYTES,
    URL_LIFETIME,
    BlobTransfers,
    Purpose,
    Upload,
)
from tests.unit.services.manager.storing import (
    GRACE,
    SignedUrls,
    StoreFixture,
    digest,
    output_of,
    upload_of,
)

CODE = upload_of(b"code", Purpose.CODE)


@pytest.fixture
async def bus() -> AsyncIterator[InMemoryBus]:
    async with InMemoryBus() as opened:
        yield opened


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for one in data:
        yield one


async def test_bytes_go_straight_to_a_store_with_urls(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, urls=SignedUrls())

    way = await shelf.transfers.prepare_upload(CODE)

    assert re.match(r"http://store/staging/[0-9a-f]{64}\?put=600&size=4\Z", way.url)
    assert way.key == f"sha256/{CODE.sha256}"
    assert way.expires_at > shelf.clock.now()


async def test_bytes_come_here_where_there_are_no_urls(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus)
    way = await shelf.transfers.prepare_upload(CODE)

    key = await shelf.transfers.receive(CODE, pieces(b"co", b"de"))

    assert (way.url, way.stored) == ("", False)
    assert key == way.key
    assert b"".join([piece async for piece in shelf.transfers.send(key)]) == b"code"


async def test_upload_that_is_too_large_for_memory_is_stored(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus)
    data = bytes(IN_MEMORY_BYTES + 1)

    key = await shelf.transfers.receive(upload_of(data, Purpose.CODE), pieces(data[:1], data[1:]))
    await shelf.transfers.receive(output_of(data), pieces(data))

    assert await shelf.blobs.get(key) == data
    assert await shelf.blobs.get("output/e1/t1/1/stdout") == data


class CountingBlobs(InMemoryBlobStore):
    """Byte store that counts the blobs that were stored from a file."""

    files = 0

    async def put_file(self, path: Path) -> str:
        self.files += 1
        return await super().put_file(path)


async def test_uploads_at_the_same_time_share_a_limited_part_of_the_memory(
    bus: InMemoryBus,
) -> None:
    shelf = StoreFixture(bus)
    blobs = CountingBlobs(shelf.clock)
    transfers = BlobTransfers(
        blobs, None, shelf.use, shelf.clock, bus.events, lambda: None, shelf.access
    )
    started = asyncio.Semaphore(0)
    slow = [
        Upload(Purpose.CHECKPOINT, f"{index:064x}", IN_MEMORY_BYTES)
        for index in range(ALL_IN_MEMORY_BYTES // IN_MEMORY_BYTES)
    ]

    async def nothing_yet() -> AsyncIterator[bytes]:
        started.release()
        await asyncio.Event().wait()
        yield b""

    tasks = [asyncio.create_task(transfers.receive(one, nothing_yet())) for one in slow]
    for _ in slow:
        await started.acquire()
    await transfers.receive(CODE, pieces(b"code"))
    beside_others = blobs.files
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await transfers.receive(upload_of(b"other", Purpose.CODE), pieces(b"other"))

    assert (beside_others, blobs.files) == (1, 1)


async def test_content_that_is_there_is_not_sent_again_unless_it_is_old(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus)
    await shelf.blobs.put(b"code")
    young = await shelf.transfers.prepare_upload(CODE)

    shelf.clock.advance(REFRESH_AFTER.total_seconds())

    assert young.stored
    assert not (await shelf.transfers.prepare_upload(CODE)).stored


async def test_content_that_is_there_in_part_is_sent_again(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus)
    await shelf.blobs.put_named(CODE.key, b"co")

    assert not (await shelf.transfers.prepare_upload(CODE)).stored


async def test_output_replaces_an_earlier_one(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus)
    for text in (b"first", b"second"):
        assert not (await shelf.transfers.prepare_upload(output_of(text))).stored
        await shelf.transfers.receive(output_of(text), pieces(text))

    assert await shelf.blobs.get("output/e1/t1/1/stdout") == b"second"


async def test_completion_tells_when_nothing_has_come(bus: InMemoryBus) -> None:
    with pytest.raises(FailedPreconditionError, match="send the bytes first"):
        await StoreFixture(bus).transfers.complete_upload(CODE)


@pytest.mark.parametrize("urls", [None, SignedUrls()])
async def test_stored_blob_survives_the_completion_of_another_size(
    bus: InMemoryBus, urls: SignedUrls | None
) -> None:
    shelf = StoreFixture(bus, urls=urls)
    await shelf.blobs.put(b"code")

    for size_bytes in (0, 3, 5):
        with pytest.raises(FailedPreconditionError, match="4 bytes are stored"):
            await shelf.transfers.complete_upload(replace(CODE, size_bytes=size_bytes))

    assert await shelf.blobs.get(CODE.key) == b"code"


@pytest.mark.parametrize("data", [b"", b"cod", b"edoc", b"code!"])
async def test_other_content_than_announced_is_deleted_and_stored_nowhere(
    bus: InMemoryBus, data: bytes
) -> None:
    shelf = StoreFixture(bus, urls=(urls := SignedUrls()))
    way = await shelf.transfers.prepare_upload(CODE)
    await urls.send(way.url, data)

    with pytest.raises(FailedPreconditionError, match="other bytes were uploaded"):
        await shelf.transfers.complete_upload(CODE)

    assert await shelf.use.all() == []


async def test_used_url_changes_nothing(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, urls=(urls := SignedUrls()))
    way = await shelf.transfers.prepare_upload(CODE)
    await urls.send(way.url, b"code")
    await shelf.transfers.complete_upload(CODE)

    await urls.send(way.url, b"evil")
    with pytest.raises(FailedPreconditionError, match="other bytes were uploaded"):
        await shelf.transfers.complete_upload(CODE)
    await shelf.transfers.complete_upload(CODE)

    assert await shelf.blobs.get(CODE.key) == b"code"


async def test_bytes_that_a_used_url_still_takes_have_room_of_their_own(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, Quota(11, 0), urls=(urls := SignedUrls()))
    await urls.send((await shelf.transfers.prepare_upload(CODE)).url, b"code")
    await shelf.transfers.complete_upload(CODE)

    with pytest.raises(ResourceExhaustedError, match="8 bytes are used"):
        await shelf.transfers.prepare_upload(upload_of(b"four"))

    shelf.clock.advance(URL_LIFETIME.total_seconds())
    assert (await shelf.transfers.prepare_upload(upload_of(b"four"))).url


async def test_content_without_a_completion_is_garbage(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, urls=(urls := SignedUrls()))
    await urls.send((await shelf.transfers.prepare_upload(CODE)).url, b"code")

    shelf.clock.advance(2 * GRACE.total_seconds())
    collected = await shelf.collector.collect()

    assert [blob.key.partition("/")[0] for blob in collected.deleted] == ["staging"]


async def test_callers_have_urls_of_their_own(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, urls=SignedUrls())
    urls = set()
    for name in ("alice", "bob"):
        with serving(Caller(name, Role.USER, "token")) as call:
            urls.add((await shelf.transfers.prepare_upload(CODE)).url)
        assert call.blob == CODE.key

    assert len(urls) == 2


async def test_complete_output_is_not_replaced(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus)
    for name in ("stdout", "files.tar"):
        await shelf.transfers.receive(output_of(b"first", name), pieces(b"first"))
    again, other = output_of(b"second"), output_of(b"other", "stderr")

    for upload in (again, other):
        with pytest.raises(FailedPreconditionError, match="is complete"):
            await shelf.transfers.prepare_upload(upload)
        with pytest.raises(FailedPreconditionError, match="is complete"):
            await shelf.transfers.receive(upload, pieces(b"second"))
        with pytest.raises(FailedPreconditionError, match="is complete"):
            await shelf.transfers.complete_upload(upload)

    assert (await shelf.transfers.prepare_upload(output_of(b"first"))).stored
    assert await shelf.blobs.get("output/e1/t1/1/stdout") == b"first"


async def test_output_is_stored_once(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus)
    await shelf.transfers.receive(output_of(b"said"), pieces(b"said"))

    assert [info.key for info in await shelf.use.all()] == ["output/e1/t1/1/stdout"]


async def test_completion_may_be_said_twice(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus)
    await shelf.blobs.put(b"code")

    await shelf.transfers.complete_upload(CODE)
    await shelf.transfers.complete_upload(CODE)

    assert await shelf.blobs.exists(CODE.key)


@pytest.mark.parametrize("data", [(b"cod",), (b"code", b"!"), (b"edoc",), ()])
async def test_other_bytes_than_announced_are_refused_and_not_kept(
    bus: InMemoryBus, data: tuple[bytes, ...]
) -> None:
    shelf = StoreFixture(bus)

    with pytest.raises(InvalidArgumentError, match="must be that of the bytes"):
        await shelf.transfers.receive(CODE, pieces(*data))

    assert await shelf.blobs.keys("sha256/") == []


async def test_what_is_over_the_quota_is_refused_both_ways(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, Quota(3, 0))

    with pytest.raises(ResourceExhaustedError, match="at most 3 bytes"):
        await shelf.transfers.prepare_upload(CODE)
    with pytest.raises(ResourceExhaustedError):
        await shelf.transfers.receive(CODE, pieces(b"code"))


async def test_what_has_come_counts(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus, Quota(0, 6))
    first, second = (upload_of(text, Purpose.CHECKPOINT, "e1") for text in (b"1234", b"5678"))
    await shelf.transfers.prepare_upload(first)
    await shelf.blobs.put(b"1234")

    await shelf.transfers.complete_upload(first)

    with pytest.raises(ResourceExhaustedError, match="e1 uses 4 bytes"):
        await shelf.transfers.prepare_upload(second)


@pytest.mark.parametrize(
    ("upload", "field"),
    [
        (replace(CODE, sha256="../../etc"), "blob.sha256"),
        (replace(CODE, sha256=CODE.sha256.upper()), "blob.sha256"),
        (replace(CODE, size_bytes=-1), "blob.size_bytes"),
        (replace(CODE, size_bytes=CODE_LIMIT_BYTES + 1), "blob.size_bytes"),
        (replace(output_of(b"x"), size_bytes=BLOB_LIMIT_BYTES + 1), "blob.size_bytes"),
        (output_of(b"x", "passwd"), "file_name"),
        (replace(output_of(b"x"), attempt=0), "attempt"),
        (replace(output_of(b"x"), trial_id="../e2/t"), "key"),
        (replace(output_of(b"x"), trial_id=""), "key"),
        (replace(output_of(b"x"), experiment_id="."), "key"),
    ],
)
async def test_upload_that_breaks_a_rule_is_refused(
    bus: InMemoryBus, upload: Upload, field: str
) -> None:
    with pytest.raises(InvalidArgumentError) as refusal:
        await StoreFixture(bus).transfers.prepare_upload(upload)

    assert refusal.value.field == field


async def test_only_what_is_found_by_its_content_is_given(bus: InMemoryBus) -> None:
    shelf = StoreFixture(bus)
    await shelf.blobs.put_named("output/e1/t1/1/stdout", b"secret")

    with pytest.raises(InvalidArgumentError, match="must start with 'sha256/'"):
        await shelf.transfers.prepare_download("output/e1/t1/1/stdout")
    with pytest.raises(InvalidArgumentError):
        await anext(shelf.transfers.send("output/e1/t1/1/stdout"))


async def test_missing_blob_is_said_before_it_is_asked_for(bus: InMemoryBus) -> None:
    for shelf in (StoreFixture(bus), StoreFixture(bus, urls=SignedUrls())):
        with pytest.raises(NotFoundError):
            await shelf.transfers.prepare_download(CODE.key)


@pytest.mark.parametrize("urls", [None, SignedUrls()])
async def test_blob_stored_after_the_deletion_of_its_experiment_is_an_orphan(
    bus: InMemoryBus, urls: SignedUrls | None
) -> None:
    shelf = StoreFixture(bus, urls=urls)
    late = output_of(b"late")
    await shelf.log("e1", digest(b"code"))

    async def store(upload: Upload, data: bytes) -> None:
        route = await shelf.transfers.prepare_upload(upload)
        if urls is None:
            await shelf.transfers.receive(upload, pieces(data))
        else:
            await urls.send(route.url, data)
            await shelf.transfers.complete_upload(upload)

    await store(output_of(b"early", "stderr"), b"early")
    early = shelf.orphans
    await bus.events.delete("e1")
    await store(late, b"late")
    await store(upload_of(b"of no experiment"), b"of no experiment")

    assert (early, shelf.orphans) == (0, 1)
