"""What services need from the store of bytes, and the rules of its keys."""

import hashlib
import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Protocol, runtime_checkable

from svc_common.errors import DataLossError, InvalidArgumentError

CONTENT_KIND: Final = "sha256"
"""First part of the keys of what is found by its content."""
KEY_LIMIT_CHARACTERS: Final = 512
REFRESH_AFTER: Final = timedelta(minutes=10)
"""Storing content that is there already makes it young again once it is as old as this. So what
was stored within this time is never garbage, however old its bytes are."""

_KEY = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+\Z")


@dataclass(frozen=True, slots=True)
class BlobInfo:
    """What is known of a blob without reading it."""

    key: str
    size_bytes: int
    stored_at: datetime
    """When it was written last, by the clock of the store."""


class BlobExchange(Protocol):
    """Puts bytes under keys and gives them back; safe to use from several tasks and processes.

    A key is `sha256/<hex>` for what is found by its content, or `<kind>/<id>/…` for what is found
    by its owner. A blob appears whole or not at all. A full disk or quota raises
    `ResourceExhaustedError`, a store that is away `UnavailableError`.
    """

    async def put(self, data: bytes) -> str:
        """Store by content and return the key; storing the same again is cheap.

        However old the content is: from now on it counts as stored at most `REFRESH_AFTER` ago.
        """
        ...

    async def put_file(self, path: Path) -> str:
        """Store the content of a file by content and return the key.

        A file of any size is never held in memory as a whole.

        Raises:
            AbortedError: the file was written to all the time.
        """
        ...

    async def put_named(self, key: str, data: bytes) -> None:
        """Store under `<kind>/<id>/…`, replacing what is there."""
        ...

    async def put_named_file(self, key: str, path: Path) -> None:
        """Store the content of a file under `<kind>/<id>/…`, replacing what is there.

        A file of any size is never held in memory as a whole.

        Raises:
            AbortedError: the file was written to all the time.
        """
        ...

    async def get(self, key: str) -> bytes:
        """Give a blob.

        Raises:
            NotFoundError: nothing has this key.
            DataLossError: what is stored is not what the key says.
        """
        ...

    async def fetch(self, key: str, path: Path) -> None:
        """Write a blob to a file, which appears whole or not at all.

        Raises:
            NotFoundError: nothing has this key.
            DataLossError: what is stored is not what the key says.
        """
        ...

    async def exists(self, key: str) -> bool:
        """Tell whether a key is taken."""
        ...


class BlobStore(BlobExchange, Protocol):
    """A `BlobExchange` that its owner can look through and clean."""

    async def info(self, key: str) -> BlobInfo:
        """Tell size and age of a blob.

        Raises:
            NotFoundError: nothing has this key.
        """
        ...

    async def delete(self, key: str) -> None:
        """Forget a blob; nothing happens if there is none."""
        ...

    async def keys(self, prefix: str) -> list[str]:
        """List the keys below `<kind>/` or `<kind>/<id>/`, sorted."""
        ...

    async def listing(self, prefix: str) -> list[BlobInfo]:
        """List what lies below `<kind>/` or `<kind>/<id>/`, sorted by key."""
        ...


@runtime_checkable
class PresignedUrls(Protocol):
    """Makes URLs with which somebody without credentials can use one blob for a while.

    What is written through one is not checked by the store: a content key is only believed by
    `BlobStore.get` and `fetch`, which compare.
    """

    async def get_url(self, key: str, lifetime: timedelta) -> str:
        """Give a URL that answers GET with the blob.

        Args:
            key: need not be taken yet.
            lifetime: until when the URL works; at least a second, at most 7 days.

        Raises:
            InvalidArgumentError: the key or the lifetime breaks a rule.
        """
        ...

    async def put_url(self, key: str, lifetime: timedelta) -> str:
        """Give a URL that takes the blob by PUT; arguments and errors as of `get_url`."""
        ...


def check_key(key: str) -> str:
    """Return `key` if it may name a blob.

    Raises:
        InvalidArgumentError: it is no path of two or more plain parts.
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
    """Return `prefix` if keys may be listed by it.

    Raises:
        InvalidArgumentError: it does not end with '/', or holds what no key may.
    """
    if not prefix.endswith("/"):
        raise InvalidArgumentError("prefix", "must end with '/'", prefix)
    check_key(f"{prefix}x")
    return prefix


def content_key(data: bytes) -> str:
    """Give the key of some content."""
    return f"{CONTENT_KIND}/{hashlib.sha256(data).hexdigest()}"


def digest_of(key: str) -> str | None:
    """Give the SHA-256, in hexadecimal digits, that the content of a key has; None: any."""
    kind, _, rest = key.partition("/")
    return rest if kind == CONTENT_KIND else None


def check_content(key: str, sha256: str) -> None:
    """Make sure that what was read under `key` is what was stored.

    Args:
        key: of the blob.
        sha256: of what was read, in hexadecimal digits.

    Raises:
        DataLossError: the key promises other content.
    """
    expected = digest_of(key)
    if expected is not None and expected != sha256:
        raise DataLossError(key, expected, sha256)
