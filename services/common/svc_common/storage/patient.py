"""`BlobStore` that waits while its server is away, for those who cannot go on without it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from svc_common.clock import Clock
from svc_common.errors import UnavailableError
from svc_common.logs import get_logger
from svc_common.storage.ports import BlobStore

T = TypeVar("T")

AGAIN_AFTER_S: Final = 1.0
"""Between two tries: short beside what a server needs to come back."""


class PatientBlobStore:
    """`BlobStore` whose calls last until the store that it stands for is there.

    No call raises `UnavailableError`; who must not wait for ever cancels it. The first call that
    has to wait, and the first one that succeeds again, are logged.

    Args:
        store: what it stands for.
        clock: waits between tries.
    """

    def __init__(self, store: BlobStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._away = False

    async def put(self, data: bytes) -> str:
        """See `BlobStore.put`."""
        return await self._when_there(lambda: self._store.put(data))

    async def put_file(self, path: Path) -> str:
        """See `BlobStore.put_file`."""
        return await self._when_there(lambda: self._store.put_file(path))

    async def put_named(self, key: str, data: bytes) -> None:
        """See `BlobStore.put_named`."""
        await self._when_there(lambda: self._store.put_named(key, data))

    async def get(self, key: str) -> bytes:
        """See `BlobStore.get`."""
        return await self._when_there(lambda: self._store.get(key))

    async def fetch(self, key: str, path: Path) -> None:
        """See `BlobStore.fetch`."""
        await self._when_there(lambda: self._store.fetch(key, path))

    async def exists(self, key: str) -> bool:
        """See `BlobStore.exists`."""
        return await self._when_there(lambda: self._store.exists(key))

    async def delete(self, key: str) -> None:
        """See `BlobStore.delete`."""
        await self._when_there(lambda: self._store.delete(key))

    async def keys(self, prefix: str) -> list[str]:
        """See `BlobStore.keys`."""
        return await self._when_there(lambda: self._store.keys(prefix))

    async def _when_there(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                answer = await call()
            except UnavailableError as error:
                if not self._away:
                    get_logger().warning("waiting for the store of bytes", error=error.message)
                self._away = True
                await self._clock.sleep(AGAIN_AFTER_S)
            else:
                if self._away:
                    get_logger().info("store of bytes is back")
                self._away = False
                return answer
