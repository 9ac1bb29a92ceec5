"""Blocking transfer of files to and from presigned URLs.

Files are streamed: nothing is held in memory as a whole.
"""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import BinaryIO, Final, Protocol
from urllib.parse import urlsplit

from svc_common.errors import NotFoundError, ResourceExhaustedError, UnavailableError

_TIMEOUT_S: Final = 60.0
"""Longest silence of the server."""
_CHUNK_BYTES: Final = 1024 * 1024
_OK: Final = frozenset({200, 201, 204})
_NOT_FOUND: Final = 404
_TOO_LARGE: Final = frozenset({413, 507})
_SHOWN: Final = 300
"""Longest part of an error response in a message."""


class Sink(Protocol):
    """Interface of an object to which bytes are written in order."""

    def write(self, data: bytes, /) -> object:
        """Write the next bytes."""
        ...


def send_file(
    url: str, key: str, source: BinaryIO, size_bytes: int, tls: ssl.SSLContext | None = None
) -> None:
    """Upload a file by HTTP PUT to a presigned URL; raise a service error if it is refused.

    Args:
        url: presigned.
        key: name of the blob, for messages: the URL is a secret.
        source: read from its current position.
        size_bytes: number of bytes to send.
        tls: verifies the server of an https URL; None: by the authorities of the system.

    Raises:
        UnavailableError: the server cannot be reached or refuses for now.
        ResourceExhaustedError: the store is full.
    """
    headers = {"Content-Length": str(size_bytes), "Content-Type": "application/octet-stream"}
    with _answer("PUT", url, key, source, headers, tls) as answer, _network_errors(url):
        answer.read()


def receive_file(url: str, key: str, target: Sink, tls: ssl.SSLContext | None = None) -> None:
    """Download a blob by HTTP GET from a presigned URL into ``target``; raise if it is cut off.

    Args:
        url: presigned.
        key: name of the blob, for messages.
        target: receives the content.
        tls: see `send_file`.

    Raises:
        NotFoundError: the blob does not exist.
        UnavailableError: the server cannot be reached or refuses for now.
        OSError: ``target`` cannot be written, as on a full disk.
    """
    with _answer("GET", url, key, None, {}, tls) as answer:
        for chunk in _content(answer, url):
            target.write(chunk)


def _content(answer: HTTPResponse, url: str) -> Iterator[bytes]:
    """Yield a response in pieces; raise UnavailableError if it is cut off."""
    expected, received = answer.length, 0
    while True:
        with _network_errors(url):
            chunk = answer.read(_CHUNK_BYTES)
            if not chunk and expected is not None and received < expected:
                raise HTTPException(f"{received} of {expected} bytes have come")
        if not chunk:
            return
        received += len(chunk)
        yield chunk


@contextmanager
def _network_errors(url: str) -> Iterator[None]:
    """Raise UnavailableError, with the server's address only, for an error of the connection."""
    try:
        yield
    except (OSError, HTTPException) as error:
        place = _place(url)
        raise UnavailableError(f"the byte store at {place} cannot be used: {error}") from error


def _place(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


@contextmanager
def _answer(
    method: str,
    url: str,
    key: str,
    body: BinaryIO | None,
    headers: dict[str, str],
    tls: ssl.SSLContext | None,
) -> Iterator[HTTPResponse]:
    parts = urlsplit(url)
    host = parts.hostname or ""
    connection = (
        HTTPSConnection(host, parts.port, timeout=_TIMEOUT_S, context=tls)
        if parts.scheme == "https"
        else HTTPConnection(host, parts.port, timeout=_TIMEOUT_S)
    )
    try:
        with _network_errors(url):
            connection.request(method, f"{parts.path}?{parts.query}", body, headers)
            answer = connection.getresponse()
            if answer.status not in _OK:
                raise _refusal(answer, key, _place(url))
        yield answer
    finally:
        connection.close()


def _refusal(answer: HTTPResponse, key: str, place: str) -> Exception:
    text = answer.read(_SHOWN).decode("utf-8", "replace")
    if answer.status == _NOT_FOUND:
        return NotFoundError("blob", key)
    if answer.status in _TOO_LARGE:
        return ResourceExhaustedError(f"the byte store at {place} takes no more bytes: {text}")
    # Also for 403: the URL has expired, and the next try gets another one.
    return UnavailableError(f"the byte store at {place} refused {key!r}: {answer.status} {text}")
