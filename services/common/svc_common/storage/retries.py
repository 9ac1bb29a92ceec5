"""Stores that wait while their server is away, for those who cannot go on without it."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from svc_common.clock import Clock
from svc_common.errors import ResourceExhaustedError, ServiceError, UnavailableError
from svc_common.logs import get_logger
from svc_common.storage.ports import BlobExchange, BlobInfo, BlobStore

T = TypeVar("T")

AGAIN_AFTER_S: Final = 1.0
"""Between two tries: short beside what a server needs to come back."""
ROOM_AGAIN_AFTER_S: Final = 5.0
"""Between two tries of what there was no room for: somebody has to make it."""


class RetryingBlobExchange:
    """`BlobExchange` whose calls last until what it stands for is there.

    No call raises `UnavailableError`; who must not wait for ever cancels it. The first call that
    has to wait, and the first one that succeeds again, are logged.

    Args:
        store: what it stands for.
        clock: waits between tries.
        wait_for_space: wait for room, too, instead of raising `ResourceExhaustedError`.
        retry_interval_s: between two tries while the store is away, in seconds.
    """

    def __init__(
        self,
        store: BlobExchange,
        clock: Clock,
        *,
        wait_for_space: bool = False,
        retry_interval_s: float = AGAIN_AFTER_S,
    ) -> None:
        self._exchange = store
        self._clock = clock
        self._pauses: dict[type[ServiceError], float] = {UnavailableError: retry_interval_s}
        if wait_for_space:
            self._pauses[ResourceExhaustedError] = ROOM_AGAIN_AFTER_S
        self.trouble = ""
        """What calls wait for now, in words; empty: for nothing."""

    async def put(self, data: bytes) -> str:
        """See `BlobExchange.put`."""
        return await self._when_there(lambda: self._exchange.put(data))

    async def put_file(self, path: Path) -> str:
        """See `BlobExchange.put_file`."""
        return await self._when_there(lambda: self._exchange.put_file(path))

    async def put_named(self, key: str, data: bytes) -> None:
        """See `BlobExchange.put_named`."""
        await self._when_there(lambda: self._exchange.put_named(key, data))

    async def put_named_file(self, key: str, path: Path) -> None:
        """See `BlobExchange.put_named_file`."""
        await self._when_there(lambda: self._exchange.put_named_file(key, path))

    async def get(self, key: str) -> bytes:
        """See `BlobExchange.get`."""
        return await self._when_there(lambda: self._exchange.get(key))

    async def fetch(self, key: str, path: Path) -> None:
        """See `BlobExchange.fetch`."""
        await self._when_there(lambda: self._exchange.fetch(key, path))

    async def exists(self, key: str) -> bool:
        """See `BlobExchange.exists`."""
        return await self._when_there(lambda: self._exchange.exists(key))

    async def _when_there(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                answer = await call()
            except tuple(self._pauses) as error:
                if not self.trouble:
                    get_logger().warning("waiting for the store of bytes", error=error.message)
                self.trouble = error.message
                pause_s = max(s for kind, s in self._pauses.items() if isinstance(error, kind))
                await self._clock.sleep(pause_s)
            else:
                if self.trouble:
                    get_logger().info("store of bytes is back")
                self.trouble = ""
                return answer


class RetryingBlobStore(RetryingBlobExchange):
    """`BlobStore` whose calls last until the store that it stands for is there.

    Args:
        store: what it stands for.
        clock: waits between tries.
    """

    def __init__(self, store: BlobStore, clock: Clock) -> None:
        super().__init__(store, clock)
        self._store = store

    async def info(self, key: str) -> BlobInfo:
        """See `BlobStore.info`."""
        return await self._when_there(lambda: self._store.info(key))

    async def delete(self, key: str) -> None:
        """See `BlobStore.delete`."""
        await self._when_there(lambda: self._store.delete(key))

    async def keys(self, prefix: str) -> list[str]:
        """See `BlobStore.keys`."""
        return await self._when_there(lambda: self._store.keys(prefix))

    async def listing(self, prefix: str) -> list[BlobInfo]:
        """See `BlobStore.listing`."""
        return await self._when_there(lambda: self._store.listing(prefix))
