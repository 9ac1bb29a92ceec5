"""`BlobStore` in memory, for tests and the simulator."""

import hashlib
from datetime import datetime
from pathlib import Path

from svc_common.clock import Clock, SystemClock
from svc_common.errors import NotFoundError
from svc_common.storage.ports import (
    BlobInfo,
    check_content,
    check_key,
    check_prefix,
    content_key,
)


class InMemoryBlobStore:
    """`BlobStore` in a dictionary, for tests.

    Args:
        clock: gives the times of storing; None: the system clock.
    """

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._blobs: dict[str, bytes] = {}
        self._stored_at: dict[str, datetime] = {}

    async def put(self, data: bytes) -> str:
        """Keep data under its SHA-256 with the current time; return the key."""
        key = content_key(data)
        self._set(key, data)
        return key

    async def put_file(self, path: Path) -> str:
        """Store a file's content under its SHA-256; return the key."""
        return await self.put(path.read_bytes())  # noqa: ASYNC240 - a fake may block on its disk

    async def put_named(self, key: str, data: bytes) -> None:
        """Store data under a checked key; replace an earlier blob."""
        self._set(check_key(key), data)

    async def put_named_file(self, key: str, path: Path) -> None:
        """Store a file's content under a checked key; replace an earlier blob."""
        await self.put_named(key, path.read_bytes())  # noqa: ASYNC240 - as above

    async def get(self, key: str) -> bytes:
        """Return a blob's data; raise if the key is unknown or the hash does not match."""
        try:
            data = self._blobs[check_key(key)]
        except KeyError as error:
            raise NotFoundError("blob", key) from error
        check_content(key, hashlib.sha256(data).hexdigest())
        return data

    async def fetch(self, key: str, path: Path) -> None:
        """Write a blob's content to a file, creating its folder; raise if there is none."""
        data = await self.get(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)  # noqa: ASYNC240 - as above

    async def exists(self, key: str) -> bool:
        """Return whether a blob has this key; raise for an invalid key."""
        return check_key(key) in self._blobs

    async def delete(self, key: str) -> None:
        """Delete a blob if it exists."""
        self._blobs.pop(check_key(key), None)
        self._stored_at.pop(key, None)

    async def info(self, key: str) -> BlobInfo:
        """Return the size and time of storing of a blob; raise NotFoundError if there is none."""
        if check_key(key) not in self._blobs:
            raise NotFoundError("blob", key)
        return self._info(key)

    async def keys(self, prefix: str) -> list[str]:
        """Return the keys below `<kind>/` or `<kind>/<id>/`, sorted."""
        start = check_prefix(prefix)
        return sorted(key for key in self._blobs if key.startswith(start))

    async def listing(self, prefix: str) -> list[BlobInfo]:
        """Return the metadata of the blobs below `<kind>/` or `<kind>/<id>/`, sorted by key."""
        return [self._info(key) for key in await self.keys(prefix)]

    def _set(self, key: str, data: bytes) -> None:
        self._blobs[key] = data
        self._stored_at[key] = self._clock.now()

    def _info(self, key: str) -> BlobInfo:
        return BlobInfo(key, len(self._blobs[key]), self._stored_at[key])
