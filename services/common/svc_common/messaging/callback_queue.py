"""A queue between a callback that must not wait and one reader that does."""

import asyncio
from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")


class CallbackQueue(Generic[T]):
    """Items put by callbacks, taken by one task; cheaper than `asyncio.Queue`, and can be closed.

    Not limited: who puts bounds what is under way (flow control, credit, interest).
    """

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._closed = False

    def put(self, item: T) -> None:
        """Add an item; dropped if the box is closed."""
        if self._closed:
            return
        self._items.append(item)
        self._wake()

    def close(self) -> None:
        """Let the reader see what is left and then the end."""
        self._closed = True
        self._wake()

    def __len__(self) -> int:
        """How many items wait."""
        return len(self._items)

    def take_all(self) -> list[T]:
        """Take what is there, without waiting."""
        items = list(self._items)
        self._items.clear()
        return items

    async def get(self) -> T:
        """Take the oldest item, waiting for one.

        Raises:
            StopAsyncIteration: the box is closed and empty.
        """
        await self._wait()
        return self._items.popleft()

    async def get_some(self, limit: int) -> list[T]:
        """Take all items there are, up to `limit`, waiting for at least one.

        Raises:
            StopAsyncIteration: the box is closed and empty.
        """
        await self._wait()
        if len(self._items) <= limit:
            return self.take_all()
        return [self._items.popleft() for _ in range(limit)]

    async def _wait(self) -> None:
        while not self._items:
            if self._closed:
                raise StopAsyncIteration
            assert self._reader is None, "a mailbox has one reader"
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)
