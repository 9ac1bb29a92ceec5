"""Use cases that transfer blobs of clients and agents.

They have no credentials for the byte store: blobs travel by presigned URL where the store supports
it, else through this process. No state is kept between the calls, so any manager may handle any.
"""

import hashlib
import io
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Final

from nni_wire.trial_blobs import OUTPUT_ARCHIVE, OUTPUT_FILES, output_key
from svc_common.access.current_call import audit_blob, caller_name, limited_agent
from svc_common.clock import Clock, SteadyClock
from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from svc_common.messaging.ports import EventLog
from svc_common.storage.ports import (
    CONTENT_KIND,
    REFRESH_AFTER,
    STAGING_KIND,
    BlobStore,
    PresignedUrls,
    check_key,
    digest_of,
)
from svc_manager.blobs.agent_access import AgentBlobAccess
from svc_manager.blobs.usage import PendingUpload, UsageCounter
from svc_manager.domain.blob_access import uploaded_key
from svc_manager.domain.quota import sized

URL_LIFETIME: Final = timedelta(minutes=10)
"""Time for a transfer to begin, whatever its duration."""
BLOB_LIMIT_BYTES: Final = 5 * 1024**3
"""Maximum size of an upload: the limit of an S3 server for one request."""
CODE_LIMIT_BYTES: Final = 400 * 1024 * 1024
"""Maximum size of a code archive: 300 MB of files, and the overhead of an archive."""
CHUNK_BYTES: Final = 1024 * 1024
IN_MEMORY_BYTES: Final = 1024 * 1024
"""Largest upload that is collected in memory; a larger one is written to a temporary file."""
ALL_IN_MEMORY_BYTES: Final = 32 * IN_MEMORY_BYTES
"""Most memory of all uploads at a time, by their announced sizes; the others are written to files.
A client may take an hour for its upload."""
_HASH_DIGITS: Final = 64


class Purpose(Enum):
    """Use of an uploaded blob: trial code, large value, checkpoint or trial output."""

    CODE = "code"
    VALUE = "value"
    CHECKPOINT = "checkpoint"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Upload:
    """Purpose, hash and size of a blob to upload, and the trial or experiment it belongs to."""

    purpose: Purpose
    sha256: str
    """Hash of the content, in lower-case hexadecimal digits."""
    size_bytes: int
    experiment_id: str = ""
    """Experiment whose quota it counts against, unless it is a value; empty: only that of the
    installation."""
    trial_id: str = ""
    """Trial that has made it; empty: no agent uploads it."""
    attempt: int = 0
    """Of the trial; >= 1."""
    file_name: str = ""
    """Only for OUTPUT; one of `OUTPUT_FILES`."""

    @property
    def key(self) -> str:
        """Return the blob key of the upload: by trial and file for an output, else by hash."""
        if self.purpose is Purpose.OUTPUT:
            return output_key(self.experiment_id, self.trial_id, self.attempt, self.file_name)
        return f"{CONTENT_KIND}/{self.sha256}"

    @property
    def pending(self) -> PendingUpload:
        """Quota that the upload reserves: key, size, experiment; values count for no experiment."""
        counted = "" if self.purpose is Purpose.VALUE else self.experiment_id
        return PendingUpload(self.key, self.size_bytes, counted)


@dataclass(frozen=True, slots=True)
class TransferRoute:
    """Route by which a client sends or gets a blob: URL, stream, or none as it is stored."""

    key: str
    expires_at: datetime
    url: str = ""
    """Empty: through this process."""
    stored: bool = False
    """The blob is stored already."""


class BlobTransfers:
    """Use cases that upload and download blobs, by presigned URL or through the manager.

    Args:
        blobs: the store.
        urls: signs URLs; None: the store has none.
        usage: counter of usage, with the quotas.
        clock: source of time.
        events: the logs, which tell the existing experiments.
        on_orphan: called when a blob was stored after its experiment was deleted: it is garbage
            that the collection at the deletion has not seen.
        access: limits agents to the blobs of their own trials.
    """

    def __init__(
        self,
        blobs: BlobStore,
        urls: PresignedUrls | None,
        usage: UsageCounter,
        clock: Clock,
        events: EventLog,
        on_orphan: Callable[[], None],
        access: AgentBlobAccess,
    ) -> None:
        self._blobs = blobs
        self._urls = urls
        self._usage = usage
        self._clock = clock
        self._events = events
        self._on_orphan = on_orphan
        self._access = access
        # Reservations end after their time, whatever is done to the wall clock.
        self._steady_clock = SteadyClock(clock)
        self._in_memory_bytes = 0
        """Announced sizes of the uploads that are collected in memory now."""

    async def prepare_upload(self, upload: Upload) -> TransferRoute:
        """Reserve quota for an upload; return a presigned URL, the stream route, or that it exists.

        Raises:
            InvalidArgumentError: a field breaks a rule.
            PermissionDeniedError: an agent may not upload it.
            ResourceExhaustedError: a quota would be exceeded.
        """
        await self._admit(upload)
        expires_at = self._clock.now() + URL_LIFETIME
        if await self._is_stored(upload) or await self._is_complete(upload):
            return TransferRoute(upload.key, expires_at, stored=True)
        await self._reserve(upload)
        if self._urls is None:
            return TransferRoute(upload.key, expires_at)
        # Never the key of the blob: the URL stays valid after the upload, and others know the key.
        url = await self._urls.put_url(_staging_key(upload), URL_LIFETIME, upload.size_bytes)
        return TransferRoute(upload.key, expires_at, url)

    async def complete_upload(self, upload: Upload) -> None:
        """Move an upload by URL to its blob key if size and hash match; else raise.

        A stored blob is never changed or deleted, whatever is announced.

        Raises:
            FailedPreconditionError: nothing was uploaded, or another content.
            PermissionDeniedError: an agent may not upload it.
        """
        await self._admit(upload)
        if await self._is_complete(upload):
            return
        staged = _staging_key(upload)
        if self._urls is None or not await self._blobs.exists(staged):
            await self._check_stored(upload)
            await self._count(upload)
            return
        await self._urls.take(staged, upload.key, upload.sha256, upload.size_bytes)
        await self._record(upload)
        await self._count(upload)
        # The URL still takes the same number of bytes: they have room until it expires.
        until = self._steady_clock.now() + URL_LIFETIME
        self._usage.hold(replace(upload.pending, key=staged), until)

    async def _admit(self, upload: Upload) -> None:
        """Check an upload and its caller; name the blob in the audit record.

        Raises:
            InvalidArgumentError: a field breaks a rule.
            PermissionDeniedError: an agent may not upload it.
        """
        check_upload(upload)
        audit_blob(upload.key)
        if upload.purpose is Purpose.CODE and limited_agent() is not None:
            raise PermissionDeniedError("agents upload no code")
        await self._access.check_upload(upload.experiment_id, upload.trial_id, upload.attempt)

    async def _record(self, upload: Upload) -> None:
        """Record an uploaded checkpoint for its experiment; do nothing for other purposes."""
        if upload.purpose is Purpose.CHECKPOINT and upload.experiment_id:
            await self._access.record_upload(upload.experiment_id, upload.sha256)

    async def _is_proven(self, upload: Upload) -> bool:
        """Return True unless a limited agent names a blob that its experiment has not uploaded.

        An agent that is limited to its trials has to send it, unless agents of the experiment have.
        """
        if limited_agent() is None:
            return True
        return bool(upload.experiment_id) and await self._access.has_uploaded(
            upload.experiment_id, upload.sha256
        )

    async def _reserve(self, upload: Upload) -> None:
        now = self._steady_clock.now()
        await self._usage.admit(upload.pending, now, now + URL_LIFETIME)

    async def _check_stored(self, upload: Upload) -> None:
        """Raise unless a blob of the announced size is stored and the caller need not send it.

        Raises:
            FailedPreconditionError: it is not, or has another size.
        """
        try:
            info = await self._blobs.info(upload.key)
        except NotFoundError:
            info = None
        if info is None or not await self._is_proven(upload):
            raise FailedPreconditionError(
                f"nothing was stored as {upload.key!r}; send the bytes first"
            )
        if info.size_bytes != upload.size_bytes:
            raise FailedPreconditionError(
                f"{info.size_bytes} bytes are stored as {upload.key!r}, {upload.size_bytes} were "
                "announced; upload the announced content first"
            )

    async def receive(self, upload: Upload, chunks: AsyncIterator[bytes]) -> str:
        """Collect an upload's chunks, check size and hash, store the blob; return its key.

        Raises:
            InvalidArgumentError: the content differs from the description.
            PermissionDeniedError: an agent may not upload it.
            ResourceExhaustedError: a quota would be exceeded.
        """
        await self._admit(upload)
        if await self._is_complete(upload):
            return upload.key
        await self._reserve(upload)
        in_memory_bytes = self._in_memory_bytes + upload.size_bytes
        if upload.size_bytes <= IN_MEMORY_BYTES and in_memory_bytes <= ALL_IN_MEMORY_BYTES:
            self._in_memory_bytes = in_memory_bytes
            try:
                await self._store_small(upload, chunks)
            finally:
                self._in_memory_bytes -= upload.size_bytes
        else:
            await self._store_large(upload, chunks)
        await self._record(upload)
        await self._count(upload)
        return upload.key

    async def _store_small(self, upload: Upload, chunks: AsyncIterator[bytes]) -> None:
        content = io.BytesIO()
        await _write(content, chunks, upload)
        if upload.purpose is Purpose.OUTPUT:
            await self._blobs.put_named(upload.key, content.getvalue())
        else:
            await self._blobs.put(content.getvalue())

    async def _store_large(self, upload: Upload, chunks: AsyncIterator[bytes]) -> None:
        with TemporaryDirectory(prefix="nni-upload-") as folder:
            path = Path(folder) / "blob"
            with path.open("wb") as file:
                await _write(file, chunks, upload)
            if upload.purpose is Purpose.OUTPUT:
                await self._blobs.put_named_file(upload.key, path)
            else:
                await self._blobs.put_file(path)

    async def prepare_download(
        self, key: str, experiment_id: str = "", trial_id: str = ""
    ) -> TransferRoute:
        """Return a presigned URL to download a blob, or the stream route; raise if it is missing.

        Args:
            key: `sha256/<hex>`.
            experiment_id: experiment that needs it; empty: the caller is no agent of a pool.
            trial_id: its trial that needs it.

        Raises:
            NotFoundError: there is no such blob, or no such experiment.
            PermissionDeniedError: an agent may not download it.
        """
        await self._admit_download(key, experiment_id, trial_id)
        expires_at = self._clock.now() + URL_LIFETIME
        await self._blobs.info(key)
        if self._urls is None:
            return TransferRoute(key, expires_at)
        return TransferRoute(key, expires_at, await self._urls.get_url(key, URL_LIFETIME))

    async def _admit_download(self, key: str, experiment_id: str, trial_id: str) -> None:
        """Check a key and its caller; name the blob in the audit record."""
        sha256 = _readable_hash(key)
        audit_blob(key)
        await self._access.check_download(sha256, experiment_id, trial_id)

    async def send(
        self, key: str, experiment_id: str = "", trial_id: str = ""
    ) -> AsyncGenerator[bytes, None]:
        """Yield the content of a blob in chunks, from a temporary file to which it is fetched.

        Args:
            key: `sha256/<hex>`.
            experiment_id: experiment that needs it; empty: the caller is no agent of a pool.
            trial_id: its trial that needs it.

        Raises:
            NotFoundError: there is no such blob, or no such experiment.
            PermissionDeniedError: an agent may not download it.
            DataLossError: it is damaged.
        """
        await self._admit_download(key, experiment_id, trial_id)
        with TemporaryDirectory(prefix="nni-download-") as folder:
            path = Path(folder) / "blob"
            await self._blobs.fetch(key, path)
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk

    async def _count(self, upload: Upload) -> None:
        """Add a stored blob to the usage; call back if its experiment was deleted meanwhile."""
        self._usage.stored(upload.pending)
        # After the blob is stored: a deletion that follows this query collects the blob itself.
        if upload.experiment_id and await self._events.last(upload.experiment_id) is None:
            self._on_orphan()

    async def _is_complete(self, upload: Upload) -> bool:
        """Return whether an attempt's outputs are stored, this one included; raise if it differs.

        Raises:
            FailedPreconditionError: they are, but this one is another: none is replaced.
        """
        if upload.purpose is not Purpose.OUTPUT:
            return False
        last = replace(upload, file_name=OUTPUT_ARCHIVE)
        if not await self._blobs.exists(last.key):
            return False
        try:
            info = await self._blobs.info(upload.key)
        except NotFoundError:
            info = None
        if info is not None and info.size_bytes == upload.size_bytes:
            return True
        raise FailedPreconditionError(
            f"the output of attempt {upload.attempt} of trial {upload.trial_id} is complete; "
            f"{upload.file_name} is not replaced"
        )

    async def _is_stored(self, upload: Upload) -> bool:
        """Return whether the caller may use a recent stored blob of this size; if so record it."""
        if upload.purpose is Purpose.OUTPUT:
            return False
        try:
            info = await self._blobs.info(upload.key)
        except NotFoundError:
            return False
        # A blob of the future was stored by another clock: its age is unknown.
        age = self._clock.now() - info.stored_at
        young = -REFRESH_AFTER < age < REFRESH_AFTER
        if not young or info.size_bytes != upload.size_bytes or not await self._is_proven(upload):
            return False
        await self._record(upload)
        return True


def _staging_key(upload: Upload) -> str:
    """Return the temporary key of an upload by URL, hashed from caller and description.

    It is derived from the description, so that any manager can complete the upload.
    """
    text = "\n".join((caller_name(), upload.key, upload.sha256, str(upload.size_bytes)))
    return f"{STAGING_KIND}/{hashlib.sha256(text.encode()).hexdigest()}"


def check_upload(upload: Upload) -> None:
    """Raise InvalidArgumentError if an upload's hash, size, ids or file name break a rule.

    Raises:
        InvalidArgumentError: a field breaks a rule.
    """
    digits = upload.sha256
    if len(digits) != _HASH_DIGITS or not set(digits) <= set("0123456789abcdef"):
        raise InvalidArgumentError(
            "blob.sha256", "must be 64 lower-case hexadecimal digits", digits[:80]
        )
    limit = CODE_LIMIT_BYTES if upload.purpose is Purpose.CODE else BLOB_LIMIT_BYTES
    if not 0 <= upload.size_bytes <= limit:
        raise InvalidArgumentError(
            "blob.size_bytes", f"must be 0 to {limit} ({sized(limit)})", upload.size_bytes
        )
    if upload.purpose is Purpose.OUTPUT and upload.file_name not in OUTPUT_FILES:
        allowed = ", ".join(OUTPUT_FILES)
        raise InvalidArgumentError("file_name", f"must be one of {allowed}", upload.file_name[:80])
    if upload.purpose is Purpose.OUTPUT and upload.attempt < 1:
        raise InvalidArgumentError("attempt", "must be >= 1", upload.attempt)
    check_key(upload.key)
    if upload.experiment_id:
        check_key(uploaded_key(upload.experiment_id, upload.sha256))


def _readable_hash(key: str) -> str:
    """Return the hash in a key; raise InvalidArgumentError for others: they are not readable."""
    sha256 = digest_of(check_key(key))
    if sha256 is None:
        raise InvalidArgumentError("key", f"must start with '{CONTENT_KIND}/'", key[:80])
    return sha256


async def _write(target: BinaryIO, chunks: AsyncIterator[bytes], upload: Upload) -> None:
    """Write chunks to a file; raise if their size or hash differs from the upload's."""
    received = 0
    digest = hashlib.sha256()
    rule = "must be that of the bytes"
    async for chunk in chunks:
        received += len(chunk)
        if received > upload.size_bytes:
            raise InvalidArgumentError(
                "blob.size_bytes", f"{rule}, and more have come", upload.size_bytes
            )
        digest.update(chunk)
        target.write(chunk)
    if received != upload.size_bytes:
        raise InvalidArgumentError(
            "blob.size_bytes", f"{rule}, and {received} have come", upload.size_bytes
        )
    if digest.hexdigest() != upload.sha256:
        raise InvalidArgumentError("blob.sha256", rule, upload.sha256)
