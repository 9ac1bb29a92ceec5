"""Transfer of bytes to and from the blob store of services on other machines."""

from __future__ import annotations

import hashlib
import io
import tempfile
from collections.abc import Callable, Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path
from typing import BinaryIO, Final, Protocol
from urllib.parse import urlsplit

from nni.experiment.code_archive import pack_code
from nni_proto.bytes.v1 import byte_service_pb2 as pb
from nni_proto.common.v1 import value_pb2

_CHUNK_BYTES: Final = 1024 * 1024
_CONNECT_S: Final = 5.0
"""Time-out of a connection to the store, whose address perhaps only the services can reach."""
_OK: Final = frozenset({200, 201, 204})


class ByteStore(Protocol):
    """Interface of the blob store for uploads: prepare, complete, and upload by stream."""

    def prepare_upload(self, request: pb.PrepareUploadRequest) -> pb.PrepareUploadResponse:
        """Request how a blob is to be sent: by URL, by stream, or not, as it is stored."""
        ...

    def complete_upload(self, header: pb.PrepareUploadRequest) -> None:
        """Complete an upload after its bytes were sent."""
        ...

    def upload(self, messages: Callable[[], Iterator[pb.UploadRequest]]) -> None:
        """Send bytes; `messages` gives them from the beginning, each time it is called."""
        ...


def upload_code(store: ByteStore, directory: Path) -> value_pb2.BlobRef:
    """Pack a code directory, upload it unless its hash is stored, and return the reference.

    Raises:
        ConfigError: it is too large, or holds what cannot be packed.
        ExperimentError: the store takes no more, or cannot be reached.
    """
    with tempfile.TemporaryFile(prefix="nni-code-") as file:
        packed = pack_code(directory, file)
        blob = value_pb2.BlobRef(sha256=packed.sha256, size_bytes=packed.size_bytes)
        _upload(store, pb.PrepareUploadRequest(purpose=pb.BLOB_PURPOSE_CODE, blob=blob), file)
    return blob


def upload_value(store: ByteStore, data: bytes) -> value_pb2.BlobRef:
    """Upload a value too large for a message unless its hash is stored; return its reference.

    Raises:
        ExperimentError: the store takes no more, or cannot be reached.
    """
    blob = value_pb2.BlobRef(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data))
    header = pb.PrepareUploadRequest(purpose=pb.BLOB_PURPOSE_VALUE, blob=blob)
    _upload(store, header, io.BytesIO(data))
    return blob


def _upload(store: ByteStore, header: pb.PrepareUploadRequest, file: BinaryIO) -> None:
    way = store.prepare_upload(header)
    if way.stored:
        return
    file.seek(0)
    if way.url and _put(way.url, file, header.blob.size_bytes):
        store.complete_upload(header)
    else:
        store.upload(lambda: _messages(header, file))


def _put(url: str, source: BinaryIO, size_bytes: int) -> bool:
    """Upload a file by HTTP PUT to a prepared address; return False if that fails."""
    parts = urlsplit(url)
    connection = _connection(url)
    headers = {
        "Content-Length": str(size_bytes),
        "Content-Type": "application/octet-stream",
    }
    try:
        connection.connect()
        connection.sock.settimeout(None)  # from now on the kernel tells of a dead peer
        connection.request("PUT", f"{parts.path}?{parts.query}", source, headers)
        answer = connection.getresponse()
        answer.read()
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
    return answer.status in _OK


def get(url: str) -> Iterator[bytes] | None:
    """Send HTTP GET to a prepared address; return the pieces of the body, None on failure."""
    parts = urlsplit(url)
    connection = _connection(url)
    try:
        connection.connect()
        connection.sock.settimeout(None)  # from now on the kernel tells of a dead peer
        connection.request("GET", f"{parts.path}?{parts.query}")
        answer = connection.getresponse()
    except (OSError, HTTPException):
        connection.close()
        return None
    if answer.status not in _OK:
        connection.close()
        return None
    return _pieces(connection, answer)


def _pieces(connection: HTTPConnection, answer: HTTPResponse) -> Iterator[bytes]:
    try:
        while piece := answer.read(_CHUNK_BYTES):
            yield piece
    finally:
        connection.close()


def _connection(url: str) -> HTTPConnection:
    parts = urlsplit(url)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    return kind(parts.hostname or "", parts.port, timeout=_CONNECT_S)


def _messages(header: pb.PrepareUploadRequest, file: BinaryIO) -> Iterator[pb.UploadRequest]:
    file.seek(0)
    yield pb.UploadRequest(header=header)
    while chunk := file.read(_CHUNK_BYTES):
        yield pb.UploadRequest(data=chunk)
