"""Conformance suite of `BlobExchange`, also through the manager."""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from svc_common.clock import SystemClock
from svc_common.errors import DataLossError, InvalidArgumentError, NotFoundError
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.directory import DirectoryBlobStore
from svc_common.storage.memory import InMemoryBlobStore
from svc_common.storage.ports import BlobExchange, BlobStore
from svc_common.storage.retries import RetryingBlobExchange
from svc_common.storage.s3 import S3BlobStore
from svc_trial_runner.adapters.manager_blobs import ManagerBlobExchange
from tests.support.byte_service import byte_channel
from tests.support.stores import S3Server

_numbers = itertools.count(1)
OUTPUT = "output/exp1/t1/1/stdout"
LARGE = os.urandom(9_000_000)


@pytest.fixture(params=["memory", "directory", "s3"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[BlobStore]:
    if request.param == "memory":
        yield InMemoryBlobStore()
    elif request.param == "directory":
        yield DirectoryBlobStore(tmp_path / "blobs")
    else:
        server: S3Server = request.getfixturevalue("shared_s3")
        settings = server.settings(f"exchange/{next(_numbers)}/")
        async with S3BlobStore(settings) as opened:
            await opened.put(b"the bucket exists")
            yield opened


@pytest.fixture(params=["itself", "patient", "manager"])
async def exchange(request: pytest.FixtureRequest, store: BlobStore) -> AsyncIterator[BlobExchange]:
    if request.param == "itself":
        yield store
    elif request.param == "patient":
        yield RetryingBlobExchange(store, SystemClock())
    else:
        async with InMemoryBus() as bus, byte_channel(bus, store) as channel:
            yield ManagerBlobExchange(channel, ())


async def test_content_is_addressed_by_its_hash(exchange: BlobExchange, store: BlobStore) -> None:
    key = await exchange.put(b"hello")

    assert key == f"sha256/{hashlib.sha256(b'hello').hexdigest()}"
    assert await exchange.get(key) == await store.get(key) == b"hello"
    assert await exchange.put(b"hello") == key


async def test_large_file_is_uploaded_and_downloaded(
    exchange: BlobExchange, tmp_path: Path
) -> None:
    (tmp_path / "in").write_bytes(LARGE)

    key = await exchange.put_file(tmp_path / "in")
    await exchange.fetch(key, tmp_path / "deep" / "out")

    assert (tmp_path / "deep" / "out").read_bytes() == LARGE


async def test_empty_file_is_a_blob(exchange: BlobExchange, tmp_path: Path) -> None:
    (tmp_path / "empty").touch()

    key = await exchange.put_file(tmp_path / "empty")

    assert await exchange.get(key) == b""


async def test_named_blob_is_replaced(
    exchange: BlobExchange, store: BlobStore, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"new")
    await exchange.put_named(OUTPUT, b"old")

    await exchange.put_named_file(OUTPUT, tmp_path / "file")

    assert await store.get(OUTPUT) == b"new"


async def test_missing_blob_is_not_found(exchange: BlobExchange, tmp_path: Path) -> None:
    key = f"sha256/{'0' * 64}"

    with pytest.raises(NotFoundError):
        await exchange.get(key)
    with pytest.raises(NotFoundError):
        await exchange.fetch(key, tmp_path / "out")

    assert not await exchange.exists(key)
    assert list(tmp_path.glob("*out*")) == []


async def test_damaged_content_is_data_loss(
    exchange: BlobExchange, store: BlobStore, tmp_path: Path
) -> None:
    key = await exchange.put(b"what was stored")
    await store.put_named(key, b"something else!")

    with pytest.raises(DataLossError, match="damaged"):
        await exchange.get(key)
    with pytest.raises(DataLossError):
        await exchange.fetch(key, tmp_path / "out")

    assert not (tmp_path / "out").exists()


async def test_key_that_could_leave_the_store_is_refused(exchange: BlobExchange) -> None:
    for key in ("/etc/passwd", "a/../b", "sha256"):
        with pytest.raises(InvalidArgumentError):
            await exchange.get(key)
        with pytest.raises(InvalidArgumentError):
            await exchange.put_named(key, b"x")
