"""Ports of the blob store, and the rules of its keys."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from svc_common.errors import DataLossError, FailedPreconditionError, InvalidArgumentError

CONTENT_KIND: Final = "sha256"
"""First part of the keys of content-addressed blobs."""
KEY_LIMIT_CHARACTERS: Final = 512
REFRESH_AFTER: Final = timedelta(minutes=10)
"""Storing existing content resets its age if it is older than this. So a blob that was stored again
within this time is never collected as garbage, however old its content is."""

_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+\Z")


STAGING_KIND: Final = "staging"
"""First part of the keys to which content is uploaded by URL."""


class ContentMismatchError(FailedPreconditionError):
    """Error: uploaded content has another size or hash than announced."""


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """Key, size and time of storing of a blob."""

    key: str
    size_bytes: int
    stored_at: datetime
    """Time of the last write, by the clock of the store."""


class BlobExchange(Protocol):
    """Interface to store and read blobs by hash or by a name `<kind>/<id>/…`.

    A key is `sha256/<hex>` for content-addressed blobs, or `<kind>/<id>/…` for blobs of an owner.
    Writes are atomic. A full disk or quota raises `ResourceExhaustedError`, an unreachable store
    `UnavailableError`.
    """

    async def put(self, data: bytes) -> str:
        """Store data under its SHA-256 and return that key; equal data is stored once.

        Existing content counts as stored at most `REFRESH_AFTER` ago from then on.
        """
        ...

    async def put_file(self, path: Path) -> str:
        """Store a file's content under its SHA-256, streamed; return that key.

        The file is streamed, whatever its size.

        Raises:
            AbortedError: the file kept changing.
        """
        ...

    async def put_named(self, key: str, data: bytes) -> None:
        """Store content under `<kind>/<id>/…`, replacing an existing blob."""
        ...

    async def put_named_file(self, key: str, path: Path) -> None:
        """Store a file's content under a name `<kind>/<id>/…`, replacing the previous blob.

        The file is streamed, whatever its size.

        Raises:
            AbortedError: the file kept changing.
        """
        ...

    async def get(self, key: str) -> bytes:
        """Return a blob's content; raise if there is none, or its hash does not match.

        Raises:
            NotFoundError: no blob has this key.
            DataLossError: the content does not match the key.
        """
        ...

    async def fetch(self, key: str, path: Path) -> None:
        """Download a blob to a file, replaced atomically; raise if it is missing or damaged.

        Raises:
            NotFoundError: no blob has this key.
            DataLossError: the content does not match the key.
        """
        ...

    async def exists(self, key: str) -> bool:
        """Return whether a blob has this key."""
        ...


class BlobStore(BlobExchange, Protocol):
    """Interface of a blob store whose blobs can also be listed, inspected and deleted."""

    async def info(self, key: str) -> BlobInfo:
        """Return the size and time of storing of a blob; raise NotFoundError if there is none.

        Raises:
            NotFoundError: no blob has this key.
        """
        ...

    async def delete(self, key: str) -> None:
        """Delete a blob if it exists."""
        ...

    async def keys(self, prefix: str) -> list[str]:
        """Return the keys below `<kind>/` or `<kind>/<id>/`, sorted."""
        ...

    async def listing(self, prefix: str) -> list[BlobInfo]:
        """Return the metadata of the blobs below `<kind>/` or `<kind>/<id>/`, sorted by key."""
        ...


@runtime_checkable
class PresignedUrls(Protocol):
    """Interface of a store that signs URLs by which clients up- and download single blobs.

    A URL to upload leads to a place of its own, below `staging/`; the store checks at most the
    size. `take` makes a blob of what has come there, once size and hash are right.
    """

    async def get_url(self, key: str, lifetime: timedelta) -> str:
        """Return a presigned URL to download a blob by HTTP GET for a limited time.

        Args:
            key: the blob need not exist yet.
            lifetime: validity of the URL; at least a second, at most 7 days.

        Raises:
            InvalidArgumentError: the key or the lifetime breaks a rule.
        """
        ...

    async def put_url(self, key: str, lifetime: timedelta, size_bytes: int | None = None) -> str:
        """Return a presigned URL to upload content by HTTP PUT to a staging key.

        Args:
            key: never the key of a stored blob, which the URL could overwrite while it is valid.
            lifetime: as of `get_url`.
            size_bytes: only content of this size is accepted; None: of any size.
        """
        ...

    async def take(self, staged: str, key: str, sha256: str, size_bytes: int) -> None:
        """Move a staged upload to its key if hash and size match; else delete it and raise.

        What is checked is what is stored, whatever is uploaded by the same URL meanwhile.

        Args:
            staged: key to which the content was uploaded.
            key: of the blob.
            sha256: expected hash, in hexadecimal digits.
            size_bytes: expected size.

        Raises:
            NotFoundError: nothing was uploaded.
            ContentMismatchError: the content differs; it was deleted.
        """
        ...


def check_key(key: str) -> str:
    """Return a blob key; raise InvalidArgumentError if its parts or length break a rule.

    Raises:
        InvalidArgumentError: the key is no path of two or more plain parts.
    """
    if len(key) > KEY_LIMIT_CHARACTERS or not _KEY.match(key):
        raise InvalidArgumentError(
            "key",
            f"must be two or more parts of letters, digits, '_', '-' and '.', joined by '/', "
            f"none starting with '.', at most {KEY_LIMIT_CHARACTERS} characters",
            key[: KEY_LIMIT_CHARACTERS + 1],
        )
    return key


def check_prefix(prefix: str) -> str:
    """Return a key prefix; raise InvalidArgumentError unless it ends with `/` and is valid.

    Raises:
        InvalidArgumentError: the prefix does not end with '/', or no key may begin with it.
    """
    if not prefix.endswith("/"):
        raise InvalidArgumentError("prefix", "must end with '/'", prefix)
    check_key(f"{prefix}x")
    return prefix


def content_key(data: bytes) -> str:
    """Return the content-addressed key of data: `sha256/` and its hash in hexadecimal digits."""
    return f"{CONTENT_KIND}/{hashlib.sha256(data).hexdigest()}"


def digest_of(key: str) -> str | None:
    """Return the SHA-256 in a content-addressed key, in hexadecimal digits; None: another key."""
    kind, _, rest = key.partition("/")
    return rest if kind == CONTENT_KIND else None


def check_content(key: str, sha256: str) -> None:
    """Raise DataLossError if a content key's hash is not that of the content read.

    Args:
        key: of the blob.
        sha256: of the content that was read, in hexadecimal digits.

    Raises:
        DataLossError: the key has another hash.
    """
    expected = digest_of(key)
    if expected is not None and expected != sha256:
        raise DataLossError(key, expected, sha256)
