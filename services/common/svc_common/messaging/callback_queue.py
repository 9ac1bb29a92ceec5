"""Unbounded queue from callbacks, which cannot wait, to one reading task."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class CallbackQueue(Generic[T]):
    """Closable FIFO queue with one reader, filled by callbacks; cheaper than `asyncio.Queue`.

    It has no limit: the source bounds what is under way (flow control, credit, interest).
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._closed = False

    def put(self, item: T) -> None:
        """Append an item and wake the reader; drop the item if the queue is closed."""
        if self._closed:
            return
        self._items.append(item)
        self._wake()

    def close(self) -> None:
        """Accept no more items; the reader gets the queued ones, then StopAsyncIteration."""
        self._closed = True
        self._wake()

    def __len__(self) -> int:
        """Return the number of waiting items."""
        return len(self._items)

    def take_all(self) -> list[T]:
        """Remove and return all items in the queue at once, without waiting."""
        items = list(self._items)
        self._items.clear()
        return items

    async def get(self) -> T:
        """Wait for an item, remove and return the oldest; StopAsyncIteration: closed and empty.

        Raises:
            StopAsyncIteration: the queue is closed and empty.
        """
        await self._wait()
        return self._items.popleft()

    async def get_some(self, limit: int) -> list[T]:
        """Wait for an item, then remove and return up to `limit`; StopAsyncIteration at the end.

        Raises:
            StopAsyncIteration: the queue is closed and empty.
        """
        await self._wait()
        if len(self._items) <= limit:
            return self.take_all()
        return [self._items.popleft() for _ in range(limit)]

    async def _wait(self) -> None:
        while not self._items:
            if self._closed:
                raise StopAsyncIteration
            assert self._reader is None, "the queue has one reader"
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
