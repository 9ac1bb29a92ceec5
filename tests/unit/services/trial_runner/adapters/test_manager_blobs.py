"""Blob transfers through the manager."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pytest

from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    ResourceExhaustedError,
    UnavailableError,
)
from svc_common.messaging.memory import InMemoryBus
from svc_common.rpc.client import open_channel
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.domain.quota import Quota
from svc_trial_runner.adapters.manager_blobs import SMALL_OUTPUT_BYTES, ManagerBlobExchange
from svc_trial_runner.domain.claims import AttemptKey
from tests.support.byte_service import byte_channel, write
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
