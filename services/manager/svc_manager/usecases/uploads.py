"""Use cases of those who hold no key to the byte store: agents and clients.

Bytes travel by presigned URL where the store has them, else through this process. Nothing is
remembered between the calls, so any manager may answer any of them.
"""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from nni_wire.trial_blobs import OUTPUT_FILES, output_key
from svc_common.clock import Clock
from svc_common.errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from svc_common.storage.ports import (
    CONTENT_KIND,
    REFRESH_AFTER,
    BlobStore,
    PresignedUrls,
    check_key,
    digest_of,
)
from svc_manager.blobs.usage import PendingUpload, UsageCounter
from svc_manager.domain.quota import sized

URL_LIFETIME: Final = timedelta(minutes=10)
"""For the request to begin; however long it lasts then."""
BLOB_LIMIT_BYTES: Final = 5 * 1024**3
"""Largest upload: what an S3 server takes in one request."""
CODE_LIMIT_BYTES: Final = 400 * 1024 * 1024
"""Largest code archive: 300 MB of files, and what an archive adds."""
CHUNK_BYTES: Final = 1024 * 1024
_HASH_DIGITS: Final = 64


class Purpose(Enum):
    """What an upload is for."""

    CODE = "code"
    VALUE = "value"
    CHECKPOINT = "checkpoint"
    OUTPUT = "output"


@dataclass(frozen=True, slots=True)
class Upload:
    """What somebody wants to store."""

    purpose: Purpose
    sha256: str
    """Of the bytes, in lower-case hexadecimal digits."""
    size_bytes: int
    experiment_id: str = ""
    """Whose quota it counts against; empty: only that of the installation."""
    trial_id: str = ""
    """Only for OUTPUT."""
    attempt: int = 0
    """Only for OUTPUT; >= 1."""
    file_name: str = ""
    """Only for OUTPUT; one of `OUTPUT_FILES`."""

    @property
    def key(self) -> str:
        """Name in the store."""
        if self.purpose is Purpose.OUTPUT:
            return output_key(self.experiment_id, self.trial_id, self.attempt, self.file_name)
        return f"{CONTENT_KIND}/{self.sha256}"

    @property
    def wanted(self) -> PendingUpload:
        """Room that it takes."""
        return PendingUpload(self.key, self.size_bytes, self.experiment_id)


@dataclass(frozen=True, slots=True)
class Way:
    """How bytes travel."""

    key: str
    expires_at: datetime
    url: str = ""
    """Empty: through this process."""
    stored: bool = False
    """They are there already."""


class ByteExchange:
    """Takes bytes in and gives them out.

    Args:
        blobs: the store.
        urls: makes URLs; None: the store has none.
        use: counts, and knows the quotas.
        clock: tells what is young.
    """

    def __init__(
        self, blobs: BlobStore, urls: PresignedUrls | None, use: UsageCounter, clock: Clock
    ) -> None:
        self._blobs = blobs
        self._urls = urls
        self._use = use
        self._clock = clock

    async def prepare_upload(self, upload: Upload) -> Way:
        """Tell how to bring some bytes; see the proto.

        Raises:
            InvalidArgumentError: a field breaks a rule.
            ResourceExhaustedError: a quota would be exceeded.
        """
        check_upload(upload)
        expires_at = self._clock.now() + URL_LIFETIME
        if await self._is_stored(upload):
            return Way(upload.key, expires_at, stored=True)
        await self._use.admit(upload.wanted, self._clock.now(), expires_at)
        if self._urls is None:
            return Way(upload.key, expires_at)
        url = await self._urls.put_url(upload.key, URL_LIFETIME)
        return Way(upload.key, expires_at, url)

    async def complete_upload(self, upload: Upload) -> None:
        """Compare what has come by URL with what was announced.

        Raises:
            FailedPreconditionError: nothing has come, or something else.
        """
        check_upload(upload)
        try:
            info = await self._blobs.info(upload.key)
        except NotFoundError as error:
            raise FailedPreconditionError(
                f"nothing was stored as {upload.key!r}; send the bytes first"
            ) from error
        if info.size_bytes != upload.size_bytes:
            await self._blobs.delete(upload.key)
            raise FailedPreconditionError(
                f"{info.size_bytes} bytes were stored as {upload.key!r}, {upload.size_bytes} were "
                f"announced; they were deleted, so send them again"
            )
        self._use.stored(upload.wanted)

    async def take(self, upload: Upload, chunks: AsyncIterator[bytes]) -> str:
        """Take the bytes themselves; return their key.

        Raises:
            InvalidArgumentError: they are more, fewer or others than announced.
            ResourceExhaustedError: a quota would be exceeded.
        """
        check_upload(upload)
        now = self._clock.now()
        await self._use.admit(upload.wanted, now, now + URL_LIFETIME)
        with TemporaryDirectory(prefix="nni-upload-") as folder:
            path = Path(folder) / "blob"
            await _write(path, chunks, upload)
            key = await self._blobs.put_file(path)
            if upload.key != key:
                await self._blobs.put_named_file(upload.key, path)
        self._use.stored(upload.wanted)
        return upload.key

    async def prepare_download(self, key: str) -> Way:
        """Tell where a blob can be had.

        Raises:
            NotFoundError: it is not there.
        """
        _check_readable(key)
        expires_at = self._clock.now() + URL_LIFETIME
        await self._blobs.info(key)
        if self._urls is None:
            return Way(key, expires_at)
        return Way(key, expires_at, await self._urls.get_url(key, URL_LIFETIME))

    async def give(self, key: str) -> AsyncGenerator[bytes, None]:
        """Give a blob piece by piece.

        Raises:
            NotFoundError: it is not there.
            DataLossError: it is damaged.
        """
        _check_readable(key)
        with TemporaryDirectory(prefix="nni-download-") as folder:
            path = Path(folder) / "blob"
            await self._blobs.fetch(key, path)
            with path.open("rb") as file:
                while chunk := file.read(CHUNK_BYTES):
                    yield chunk

    async def _is_stored(self, upload: Upload) -> bool:
        """Tell whether the same content is there, and so young that it is no garbage meanwhile."""
        if upload.purpose is Purpose.OUTPUT:
            return False
        try:
            info = await self._blobs.info(upload.key)
        except NotFoundError:
            return False
        young = self._clock.now() - info.stored_at < REFRESH_AFTER
        return young and info.size_bytes == upload.size_bytes


def check_upload(upload: Upload) -> None:
    """Make sure that an upload says what it must.

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


def _check_readable(key: str) -> None:
    """Only what is found by its content is given: whoever knows the hash was told of it."""
    if digest_of(check_key(key)) is None:
        raise InvalidArgumentError("key", f"must start with '{CONTENT_KIND}/'", key[:80])


async def _write(path: Path, chunks: AsyncIterator[bytes], upload: Upload) -> None:
    """Write what comes, and make sure that it is what was announced."""
    received = 0
    digest = hashlib.sha256()
    rule = "must be that of the bytes"
    with path.open("wb") as file:
        async for chunk in chunks:
            received += len(chunk)
            if received > upload.size_bytes:
                raise InvalidArgumentError(
                    "blob.size_bytes", f"{rule}, and more have come", upload.size_bytes
                )
            digest.update(chunk)
            file.write(chunk)
    if received != upload.size_bytes:
        raise InvalidArgumentError(
            "blob.size_bytes", f"{rule}, and {received} have come", upload.size_bytes
        )
    if digest.hexdigest() != upload.sha256:
        raise InvalidArgumentError("blob.sha256", rule, upload.sha256)
