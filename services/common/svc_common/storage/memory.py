"""`BlobStore` in memory, for tests and the simulator."""

import hashlib
from pathlib import Path

from svc_common.errors import NotFoundError
from svc_common.storage.ports import check_content, check_key, check_prefix, content_key


class InMemoryBlobStore:
    """`BlobStore` in a dictionary."""

    def __init__(self) -> None:
        self._blobs: dict[str, bytes] = {}

    async def put(self, data: bytes) -> str:
        """See `BlobStore.put`."""
        key = content_key(data)
        self._blobs[key] = data
        return key

    async def put_file(self, path: Path) -> str:
        """See `BlobStore.put_file`."""
        return await self.put(path.read_bytes())  # noqa: ASYNC240 - a fake may wait for its disk

    async def put_named(self, key: str, data: bytes) -> None:
        """See `BlobStore.put_named`."""
        self._blobs[check_key(key)] = data

    async def get(self, key: str) -> bytes:
        """See `BlobStore.get`."""
        try:
            data = self._blobs[check_key(key)]
        except KeyError as error:
            raise NotFoundError("blob", key) from error
        check_content(key, hashlib.sha256(data).hexdigest())
        return data

    async def fetch(self, key: str, path: Path) -> None:
        """See `BlobStore.fetch`."""
        data = await self.get(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)  # noqa: ASYNC240 - as above

    async def exists(self, key: str) -> bool:
        """See `BlobStore.exists`."""
        return check_key(key) in self._blobs

    async def delete(self, key: str) -> None:
        """See `BlobStore.delete`."""
        self._blobs.pop(check_key(key), None)

    async def keys(self, prefix: str) -> list[str]:
        """See `BlobStore.keys`."""
        start = check_prefix(prefix)
        return sorted(key for key in self._blobs if key.startswith(start))
