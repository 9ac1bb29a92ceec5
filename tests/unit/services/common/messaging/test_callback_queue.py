import asyncio

import pytest

from svc_common.messaging.callback_queue import CallbackQueue


async def test_reader_gets_what_was_put_in_order() -> None:
    queue: CallbackQueue[int] = CallbackQueue()
    for item in range(3):
        queue.put(item)

    assert [await queue.get() for _ in range(3)] == [0, 1, 2]


async def test_waiting_reader_is_woken() -> None:
    queue: CallbackQueue[int] = CallbackQueue()
    waiting = asyncio.ensure_future(queue.get_some(10))
    await asyncio.sleep(0)

    queue.put(1)
    queue.put(2)

    assert await waiting == [1, 2]


async def test_no_more_than_the_limit_is_taken_at_once() -> None:
    queue: CallbackQueue[int] = CallbackQueue()
    for item in range(5):
        queue.put(item)

    assert await queue.get_some(2) == [0, 1]
    assert len(queue) == 3
    assert queue.take_all() == [2, 3, 4]


async def test_closed_queue_is_emptied_first() -> None:
    queue: CallbackQueue[int] = CallbackQueue()
    queue.put(1)
    queue.close()
    queue.put(2)

    assert await queue.get() == 1
    with pytest.raises(StopAsyncIteration):
        await queue.get()


async def test_close_wakes_a_waiting_reader() -> None:
    queue: CallbackQueue[int] = CallbackQueue()
    waiting = asyncio.ensure_future(anext(_items(queue), None))
    await asyncio.sleep(0)

    queue.close()

    assert await waiting is None


async def test_cancelled_reader_loses_nothing() -> None:
    queue: CallbackQueue[int] = CallbackQueue()
    waiting = asyncio.ensure_future(queue.get())
    await asyncio.sleep(0)

    waiting.cancel()
    queue.put(1)
    await asyncio.gather(waiting, return_exceptions=True)

    assert await queue.get() == 1


class _items:  # noqa: N801 - an iterator over a queue
    def __init__(self, queue: CallbackQueue[int]) -> None:
        self._queue = queue

    def __aiter__(self) -> "_items":
        return self

    async def __anext__(self) -> int:
        return await self._queue.get()
