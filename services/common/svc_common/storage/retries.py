"""`BlobStore` decorators that retry calls until the server is reachable."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final, TypeVar

from svc_common.clock import Clock
from svc_common.errors import ResourceExhaustedError, ServiceError, UnavailableError
from svc_common.logs import get_logger
from svc_common.storage.ports import BlobExchange, BlobInfo, BlobStore

T = TypeVar("T")

RETRY_INTERVAL_S: Final = 1.0
"""Between two attempts: short compared to the restart of a server."""
FULL_RETRY_INTERVAL_S: Final = 5.0
"""Between two attempts while the store is full: an operator has to free space."""


class RetryingBlobExchange:
    """Blob exchange that repeats the calls of another one for as long as that is unavailable.

    No call raises `UnavailableError`; a caller with a deadline cancels the call. The first failed
    attempt and the first success after it are logged.

    Args:
        store: executes the calls.
        clock: waits between attempts.
        wait_for_space: retry if the store is full, too, instead of raising
            `ResourceExhaustedError`.
        retry_interval_s: seconds between two attempts while the store is unavailable.
    """

    def __init__(
        self,
        store: BlobExchange,
        clock: Clock,
        *,
        wait_for_space: bool = False,
        retry_interval_s: float = RETRY_INTERVAL_S,
    ) -> None:
        self._exchange = store
        self._clock = clock
        self._pauses: dict[type[ServiceError], float] = {UnavailableError: retry_interval_s}
        if wait_for_space:
            self._pauses[ResourceExhaustedError] = FULL_RETRY_INTERVAL_S
        self.trouble = ""
        """Error that calls are retried for; empty: none."""

    async def put(self, data: bytes) -> str:
        """Store data under its SHA-256; return that key; retry while the store is away."""
        return await self._retry(lambda: self._exchange.put(data))

    async def put_file(self, path: Path) -> str:
        """Store a file under its SHA-256; return that key; retry while the store is away."""
        return await self._retry(lambda: self._exchange.put_file(path))

    async def put_named(self, key: str, data: bytes) -> None:
        """Store content under `<kind>/<id>/…`, replacing a blob; retry while the store is away."""
        await self._retry(lambda: self._exchange.put_named(key, data))

    async def put_named_file(self, key: str, path: Path) -> None:
        """Store a file under `<kind>/<id>/…`, replacing a blob; retry while the store is away."""
        await self._retry(lambda: self._exchange.put_named_file(key, path))

    async def get(self, key: str) -> bytes:
        """Return a blob's content; raise if there is none; retry while the store is away."""
        return await self._retry(lambda: self._exchange.get(key))

    async def fetch(self, key: str, path: Path) -> None:
        """Write a blob's content to a file, atomically; retry while the store is away."""
        await self._retry(lambda: self._exchange.fetch(key, path))

    async def exists(self, key: str) -> bool:
        """Return whether a blob has this key; retry while the store is away."""
        return await self._retry(lambda: self._exchange.exists(key))

    async def _retry(self, call: Callable[[], Awaitable[T]]) -> T:
        while True:
            try:
                answer = await call()
            except tuple(self._pauses) as error:
                if not self.trouble:
                    get_logger().warning("waiting for the blob store", error=error.message)
                self.trouble = error.message
                pause_s = max(s for kind, s in self._pauses.items() if isinstance(error, kind))
                await self._clock.sleep(pause_s)
            else:
                if self.trouble:
                    get_logger().info("blob store available again")
                self.trouble = ""
                return answer


class RetryingBlobStore(RetryingBlobExchange):
    """Blob store that repeats the calls of another one for as long as that is unavailable.

    Args:
        store: executes the calls.
        clock: waits between attempts.
    """

    def __init__(self, store: BlobStore, clock: Clock) -> None:
        super().__init__(store, clock)
        self._store = store

    async def info(self, key: str) -> BlobInfo:
        """Return a blob's size and time, or raise NotFoundError; retry while the store is away."""
        return await self._retry(lambda: self._store.info(key))

    async def delete(self, key: str) -> None:
        """Delete a blob if it exists; retry while the store is away."""
        await self._retry(lambda: self._store.delete(key))

    async def keys(self, prefix: str) -> list[str]:
        """Return the keys below `<kind>/` or `<kind>/<id>/`; retry while the store is away."""
        return await self._retry(lambda: self._store.keys(prefix))

    async def listing(self, prefix: str) -> list[BlobInfo]:
        """Return the metadata of blobs below a prefix, by key; retry while the store is away."""
        return await self._retry(lambda: self._store.listing(prefix))
