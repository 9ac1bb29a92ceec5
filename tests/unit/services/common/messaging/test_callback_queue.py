import asyncio

import pytest

from svc_common.messaging.callback_queue import CallbackQueue


async def test_reader_gets_what_was_put_in_order() -> None:
    box: CallbackQueue[int] = CallbackQueue()
    for item in range(3):
        box.put(item)

    assert [await box.get() for _ in range(3)] == [0, 1, 2]


async def test_waiting_reader_is_woken() -> None:
    box: CallbackQueue[int] = CallbackQueue()
    waiting = asyncio.ensure_future(box.get_some(10))
    await asyncio.sleep(0)

    box.put(1)
    box.put(2)

    assert await waiting == [1, 2]


async def test_no_more_than_the_limit_is_taken_at_once() -> None:
    box: CallbackQueue[int] = CallbackQueue()
    for item in range(5):
        box.put(item)

    assert await box.get_some(2) == [0, 1]
    assert len(box) == 3
    assert box.take_all() == [2, 3, 4]


async def test_closed_box_is_emptied_first() -> None:
    box: CallbackQueue[int] = CallbackQueue()
    box.put(1)
    box.close()
    box.put(2)

    assert await box.get() == 1
    with pytest.raises(StopAsyncIteration):
        await box.get()


async def test_close_wakes_a_waiting_reader() -> None:
    box: CallbackQueue[int] = CallbackQueue()
    waiting = asyncio.ensure_future(anext(_items(box), None))
    await asyncio.sleep(0)

    box.close()

    assert await waiting is None


async def test_cancelled_reader_loses_nothing() -> None:
    box: CallbackQueue[int] = CallbackQueue()
    waiting = asyncio.ensure_future(box.get())
    await asyncio.sleep(0)

    waiting.cancel()
    box.put(1)
    await asyncio.gather(waiting, return_exceptions=True)

    assert await box.get() == 1


class _items:  # noqa: N801 - an iterator over a box
    def __init__(self, box: CallbackQueue[int]) -> None:
        self._box = box

    def __aiter__(self) -> "_items":
        return self

    async def __anext__(self) -> int:
        return await self._box.get()
