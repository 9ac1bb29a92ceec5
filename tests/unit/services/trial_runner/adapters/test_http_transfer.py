"""Transfers to and from presigned URLs."""

from __future__ import annotations

import asyncio
import errno
import io
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from svc_common.access.transport import Transport
from svc_common.errors import NotFoundError, ResourceExhaustedError, UnavailableError
from svc_trial_runner.adapters.http_transfer import receive_file, send_file
from tests.support.byte_service import write
from tests.support.certificates import Authority
from tests.support.ports import free_port


@asynccontextmanager
async def answering(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve one fixed response over HTTP, or HTTPS; yield the URL."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    async with server:
        port = server.sockets[0].getsockname()[1]
        yield f"http{'s' if tls else ''}://127.0.0.1:{port}/bucket/key?signed=secret"


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
        ("413 Content Too Large", ResourceExhaustedError),
        ("202 Accepted", UnavailableError),
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


@pytest.mark.parametrize("status", ["200 OK", "201 Created", "204 No Content"])
async def test_upload_is_over_with_any_success(tmp_path: Path, status: str) -> None:
    path = write(tmp_path / "file", b"data")

    async with answering(answer(status)) as url:
        sending = asyncio.create_task(sent(url, path))
        await asyncio.wait({sending})

    assert sending.exception() is None


async def test_refusal_shows_300_bytes_of_the_answer(tmp_path: Path) -> None:
    path = write(tmp_path / "file", b"data")

    async with answering(answer("503 Slow Down", b"#" * 301)) as url:
        with pytest.raises(UnavailableError) as refusal:
            await sent(url, path)

    assert str(refusal.value).count("#") == 300


@pytest.mark.parametrize("size_bytes", [5, 100])
async def test_truncated_download_is_an_error(tmp_path: Path, size_bytes: int) -> None:
    torn = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\nhalf" % size_bytes

    async with answering(torn) as url:
        with (tmp_path / "out").open("wb") as target, pytest.raises(UnavailableError):
            await asyncio.to_thread(receive_file, url, "the key", target)


async def test_download_is_written_to_the_target() -> None:
    target = io.BytesIO()

    async with answering(answer("200 OK", b"content")) as url:
        await asyncio.to_thread(receive_file, url, "the key", target)

    assert target.getvalue() == b"content"


async def test_missing_blob_is_not_found() -> None:
    async with answering(answer("404 Not Found")) as url:
        with pytest.raises(NotFoundError, match="the key"):
            await asyncio.to_thread(receive_file, url, "the key", io.BytesIO())


async def test_upload_sends_the_given_part_of_the_file(tmp_path: Path) -> None:
    requests: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        requests.append(head.split(b"\r\n")[0] + b" " + await reader.readexactly(4))
        writer.write(answer("200 OK"))
        await writer.drain()
        writer.close()

    path = write(tmp_path / "file", b"skip" + b"data" + b"rest")
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/bucket/key?x=1"
        with path.open("rb") as source:
            source.seek(4)
            await asyncio.to_thread(send_file, url, "the key", source, 4)

    assert requests == [b"PUT /bucket/key?x=1 HTTP/1.1 data"]


async def test_https_store_is_verified_by_the_authority_of_the_services(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"data")
    authority = Authority(tmp_path / "own")
    own, stranger = authority.security().transport, Authority(tmp_path / "other")
    other = Transport(ca=stranger.ca)

    async with answering(answer("200 OK"), own.http_server_context()) as url:
        with (tmp_path / "file").open("rb") as source:
            await asyncio.to_thread(send_file, url, "the key", source, 4, own.client_context())
        with (
            (tmp_path / "file").open("rb") as source,
            pytest.raises(UnavailableError, match="CERTIFICATE_VERIFY_FAILED"),
        ):
            await asyncio.to_thread(send_file, url, "the key", source, 4, other.client_context())


class FullDisk:
    """Target of a download on a disk without room."""

    def write(self, data: bytes, /) -> object:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_disk_that_cannot_take_a_download_is_no_fault_of_the_store() -> None:
    async with answering(answer("200 OK", b"data")) as url:
        with pytest.raises(OSError, match="No space left on device") as full:
            await asyncio.to_thread(receive_file, url, "the key", FullDisk())

    assert full.value.errno == errno.ENOSPC
