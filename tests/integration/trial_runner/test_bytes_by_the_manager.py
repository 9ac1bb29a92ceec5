"""Blob transfers of an agent while manager or store fail."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from svc_common.errors import (
    InvalidArgumentError,
    NotFoundError,
    ResourceExhaustedError,
    UnavailableError,
)
from svc_common.messaging.memory import InMemoryBus
from svc_common.rpc.client import open_channel
from svc_common.storage.memory import InMemoryBlobStore
from svc_manager.domain.quota import Quota
from svc_trial_runner.adapters.http_transfer import receive_file, send_file
from svc_trial_runner.adapters.manager_blobs import ManagerBlobExchange
from tests.support.byte_service import byte_channel, write
from tests.support.local_shape import free_port


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """Serve one fixed response over HTTP; yield the URL."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http://127.0.0.1:{port}/bucket/key?signed=secret"


def answer(status: str, body: bytes = b"") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\n\r\n%s" % (status.encode(), len(body), body)


async def sent(url: str, path: Path) -> None:
    with path.open("rb") as source:
        await asyncio.to_thread(send_file, url, "the key", source, 4)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("403 Forbidden", UnavailableError),
        ("503 Slow Down", UnavailableError),
        ("404 Not Found", NotFoundError),
        ("507 Insufficient Storage", ResourceExhaustedError),
    ],
)
async def test_refusal_of_the_store_is_an_error_to_act_on(
    tmp_path: Path, status: str, error: type[Exception]
) -> None:
    path = write(tmp_path / "file", b"data")

    async with answering(answer(status, b"why")) as url:
        with pytest.raises(error) as refusal:
            await sent(url, path)

    assert "secret" not in str(refusal.value)


async def test_unavailable_store_is_named_without_the_signature(tmp_path: Path) -> None:
    path = write(tmp_path / "file", b"data")

    with pytest.raises(UnavailableError) as refusal:
        await sent(f"http://127.0.0.1:{free_port()}/b/k?signed=secret", path)

    assert "127.0.0.1" in str(refusal.value)
    assert "secret" not in str(refusal.value)


async def test_truncated_download_is_an_error(tmp_path: Path) -> None:
    torn = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"

    async with answering(torn) as url:
        with (tmp_path / "out").open("wb") as target, pytest.raises(UnavailableError):
            await asyncio.to_thread(receive_file, url, "the key", target)


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
            await exchange.of_experiment("e1").put_file(checkpoint)

        assert await exchange.put_file(checkpoint)


async def test_agents_write_named_outputs_only(tmp_path: Path) -> None:
    async with open_channel(f"127.0.0.1:{free_port()}") as channel:
        exchange = ManagerBlobExchange(channel, ())

        for key in ("snapshot/e1/state", "summary/e1/7", "output/e1/t1/stdout", "sha256/abc"):
            with pytest.raises(InvalidArgumentError):
                await exchange.put_named(key, b"x")
