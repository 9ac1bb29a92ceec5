"""Blob store through the manager: this machine holds no key to the store."""

import asyncio
import errno
import hashlib
import io
import os
import re
import ssl
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final

import grpc.aio

from nni_proto.bytes.v1 import byte_service_pb2 as pb
from nni_proto.bytes.v1 import byte_service_pb2_grpc as pb_grpc
from nni_proto.common.v1 import value_pb2
from nni_wire.trial_blobs import OUTPUT_KIND
from svc_common.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from svc_common.rpc.client import CALL_TIMEOUT_S, Metadata, service_error
from svc_common.storage.atomic_files import CHUNK_BYTES, atomic_file, storage_error
from svc_common.storage.ports import check_content, check_key
from svc_trial_runner.adapters.http_transfer import receive_file, send_file
from svc_trial_runner.domain.claims import AttemptKey

_STREAM_TIMEOUT_S: Final = 3600.0
SMALL_OUTPUT_BYTES: Final = 256 * 1024
"""Largest output that is sent in one call, without asking first whether there is room for it."""
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NO_FILE: Final = frozenset({errno.ENOENT, errno.ELOOP, errno.ENXIO})
"""Errors of `_READ`: nothing is there, or a link, or a socket."""
_OUTPUT_KEY: Final = re.compile(rf"{OUTPUT_KIND}/([^/]+)/([^/]+)/([0-9]{{1,9}})/([^/]+)\Z")
"""Experiment, trial, attempt, file."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """SHA-256 and size of data to be uploaded."""

    sha256: str
    size_bytes: int


class ManagerBlobExchange:
    """Blob exchange through the manager's gRPC; content goes by presigned URL if there is one.

    Named blobs are outputs of trials only, `output/<experiment>/<trial>/<attempt>/<file>`; blobs
    are read by content hash only. The manager admits an agent of a pool to what an attempt of its
    own needs or has made.

    Args:
        channel: to the manager; owned by the caller.
        metadata: of each call, with the token.
        attempt: attempt that needs what is read, and has made what is stored by content; None:
            none is named.
        checkpoints: what is stored by content are checkpoints; else values.
        tls: verifies the store where URLs are https; None: by the authorities of the system.
        by_url: whether this machine may reach the store, so that URLs are used; else all content
            goes through the manager.
    """

    def __init__(
        self,
        channel: grpc.aio.Channel,
        metadata: Metadata,
        attempt: AttemptKey | None = None,
        tls: ssl.SSLContext | None = None,
        *,
        by_url: bool = True,
        checkpoints: bool = False,
    ) -> None:
        self._channel = channel
        self._metadata = metadata
        self._attempt = attempt or AttemptKey("", "", 0)
        self._checkpoints = checkpoints
        self._tls = tls
        self._by_url = by_url
        self._stub: Any = pb_grpc.ByteServiceStub(channel)

    def of_attempt(
        self, attempt: AttemptKey, *, checkpoints: bool = False
    ) -> "ManagerBlobExchange":
        """Return an exchange for an attempt's blobs; it stores values, or checkpoints if set.

        Args:
            attempt: attempt that needs what is read, and has made what is stored.
            checkpoints: what is stored by content are checkpoints instead.
        """
        return ManagerBlobExchange(
            self._channel,
            self._metadata,
            attempt,
            self._tls,
            by_url=self._by_url,
            checkpoints=checkpoints,
        )

    async def put(self, data: bytes) -> str:
        """Store content and return its key; storing the same content again is cheap."""
        measured = _Measured(hashlib.sha256(data).hexdigest(), len(data))
        return await self._put(self._header(measured), lambda: io.BytesIO(data))

    async def put_file(self, path: Path) -> str:
        """Store the content of a file and return its key."""
        return await self._put(self._header(await _measure(path)), partial(_open_own, path))

    async def put_named(self, key: str, data: bytes) -> None:
        """Store content under `<kind>/<id>/…`, replacing an existing blob."""
        measured = _Measured(hashlib.sha256(data).hexdigest(), len(data))
        await self._put(_output_header(key, measured), lambda: io.BytesIO(data))

    async def put_named_file(self, key: str, path: Path) -> None:
        """Store a file as `output/<experiment>/<trial>/<attempt>/<file>`, replacing an old one."""
        small = None if self._by_url else await asyncio.to_thread(_read_small, path)
        if small is not None:
            measured = _Measured(hashlib.sha256(small).hexdigest(), len(small))
            await self._send_whole(_output_header(key, measured), small)
            return
        header = _output_header(key, await _measure(path))
        await self._put(header, partial(_open_own, path))

    async def get(self, key: str) -> bytes:
        """Return a blob, downloaded by URL or the manager's stream; raise if its hash differs."""
        target = io.BytesIO()
        await self._receive(key, _Hashed(target))
        return target.getvalue()

    async def fetch(self, key: str, path: Path) -> None:
        """Download a blob to a file by URL or the manager's stream; atomic, the hash is checked."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with atomic_file(path) as target:
                await self._receive(key, _Hashed(target))
        except OSError as error:
            raise storage_error(error) from error

    async def exists(self, key: str) -> bool:
        """Return whether a blob exists, by a request to prepare its download."""
        try:
            await self._prepare_download(key)
        except NotFoundError:
            return False
        return True

    def _header(self, measured: _Measured) -> pb.PrepareUploadRequest:
        purpose = pb.BLOB_PURPOSE_CHECKPOINT if self._checkpoints else pb.BLOB_PURPOSE_VALUE
        return pb.PrepareUploadRequest(
            purpose=purpose,
            experiment_id=self._attempt.experiment_id,
            trial_id=self._attempt.trial_id,
            attempt=self._attempt.attempt,
            blob=_ref(measured),
        )

    async def _prepare_download(self, key: str) -> pb.PrepareDownloadResponse:
        request = pb.PrepareDownloadRequest(
            key=check_key(key),
            experiment_id=self._attempt.experiment_id,
            trial_id=self._attempt.trial_id,
        )
        way: pb.PrepareDownloadResponse = await self._call("PrepareDownload", request)
        return way

    async def _put(self, header: pb.PrepareUploadRequest, opened: Any) -> str:  # noqa: ANN401 - opens a file
        way: pb.PrepareUploadResponse = await self._call("PrepareUpload", header)
        if way.stored:
            return way.key
        with await asyncio.to_thread(opened) as source:
            if way.url and self._by_url:
                size_bytes = header.blob.size_bytes
                await asyncio.to_thread(send_file, way.url, way.key, source, size_bytes, self._tls)
                await self._call("CompleteUpload", pb.CompleteUploadRequest(header=header))
            else:
                await self._stream(header, source)
        return way.key

    async def _send_whole(self, header: pb.PrepareUploadRequest, data: bytes) -> None:
        """Upload content in one message; the manager checks the quota when it comes."""

        async def message() -> AsyncIterator[pb.UploadRequest]:
            yield pb.UploadRequest(header=header, data=data)

        await self._upload(message())

    async def _stream(self, header: pb.PrepareUploadRequest, source: BinaryIO) -> None:
        async def messages() -> AsyncIterator[pb.UploadRequest]:
            yield pb.UploadRequest(header=header)
            while chunk := await asyncio.to_thread(source.read, CHUNK_BYTES):
                yield pb.UploadRequest(data=chunk)

        await self._upload(messages())

    async def _upload(self, messages: AsyncIterator[pb.UploadRequest]) -> None:
        try:
            await self._stub.Upload(messages, timeout=_STREAM_TIMEOUT_S, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            raise service_error(error) from error

    async def _receive(self, key: str, target: "_Hashed") -> None:
        await self._fetch_once(key, target)
        check_content(key, target.digest.hexdigest())

    async def _fetch_once(self, key: str, target: "_Hashed") -> None:
        way = await self._prepare_download(key)
        if way.url and self._by_url:
            await asyncio.to_thread(receive_file, way.url, key, target, self._tls)
            return
        request = pb.DownloadRequest(
            key=key, experiment_id=self._attempt.experiment_id, trial_id=self._attempt.trial_id
        )
        stream = self._stub.Download(request, timeout=_STREAM_TIMEOUT_S, metadata=self._metadata)
        try:
            async for piece in stream:
                target.write(piece.data)
        except grpc.aio.AioRpcError as error:
            raise service_error(error) from error

    async def _call(self, method: str, request: object) -> Any:  # noqa: ANN401 - the answer of the method
        try:
            return await getattr(self._stub, method)(
                request, timeout=CALL_TIMEOUT_S, metadata=self._metadata
            )
        except grpc.aio.AioRpcError as error:
            raise service_error(error) from error


class _Hashed:
    """Writer that passes bytes on to another one and computes their SHA-256."""

    def __init__(self, target: BinaryIO) -> None:
        self._target = target
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> None:
        """Write and hash the next bytes."""
        self.digest.update(data)
        self._target.write(data)


def _ref(measured: _Measured) -> value_pb2.BlobRef:
    return value_pb2.BlobRef(sha256=measured.sha256, size_bytes=measured.size_bytes)


def _output_header(key: str, measured: _Measured) -> pb.PrepareUploadRequest:
    parts = _OUTPUT_KEY.match(check_key(key))
    if parts is None:
        raise InvalidArgumentError(
            "key", "must be output/<experiment>/<trial>/<attempt>/<file>", key[:80]
        )
    experiment_id, trial_id, attempt, file_name = parts.groups()
    return pb.PrepareUploadRequest(
        purpose=pb.BLOB_PURPOSE_OUTPUT,
        experiment_id=experiment_id,
        trial_id=trial_id,
        attempt=int(attempt),
        file_name=file_name,
        blob=_ref(measured),
    )


def _open_own(path: Path) -> io.BufferedReader:
    """Open a regular file for reading; raise for a link, a pipe or a missing file.

    A link would be read with the rights of the agent, and a pipe would never end.

    Raises:
        FailedPreconditionError: it is no regular file, or gone: another try would not help.
    """
    try:
        descriptor = os.open(path, _READ)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise FailedPreconditionError(f"{path} is no file: {error.strerror}") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FailedPreconditionError(f"{path} is no regular file")
    return os.fdopen(descriptor, "rb")


def _read_small(path: Path) -> bytes | None:
    """Return the content of a file; None if it exceeds `SMALL_OUTPUT_BYTES`."""
    try:
        with _open_own(path) as file:
            data = file.read(SMALL_OUTPUT_BYTES + 1)
    except OSError as error:
        raise storage_error(error) from error
    return data if len(data) <= SMALL_OUTPUT_BYTES else None


async def _measure(path: Path) -> _Measured:
    def measured() -> _Measured:
        with _open_own(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            return _Measured(digest, file.tell())

    try:
        return await asyncio.to_thread(measured)
    except OSError as error:
        raise storage_error(error) from error
