"""Streams of unlimited length."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from svc_common.errors import AbortedError
from svc_manager.web.streams import end_on_error, take_until


async def items(count: int, *, endless: bool = False) -> Any:
    for number in range(count):
        yield number
    if endless:
        await asyncio.Event().wait()


async def test_stream_ends_when_the_listener_closes() -> None:
    stopped = asyncio.Event()
    seen: list[int | None] = []

    async for item in take_until(_waiter(stopped), items(3, endless=True)):
        seen.append(item)
        if item == 2:
            stopped.set()

    assert seen == [0, 1, 2]


async def test_stream_ends_with_its_items() -> None:
    seen = [item async for item in take_until(_waiter(asyncio.Event()), items(2))]

    assert seen == [0, 1]


async def test_idle_stream_has_heartbeats() -> None:
    live = take_until(_waiter(asyncio.Event()), items(0, endless=True), heartbeat_s=0.001)

    first = await anext(live)
    await live.aclose()

    assert first is None


def _waiter(event: asyncio.Event) -> Any:
    async def wait() -> None:
        await event.wait()

    return wait


async def test_stream_with_a_service_error_ends() -> None:
    async def broken() -> Any:
        yield 1
        raise AbortedError("the experiment was closed here")

    assert [item async for item in end_on_error(broken())] == [1]


async def test_stream_with_an_unexpected_error_raises_it() -> None:
    async def broken() -> Any:
        yield 1
        raise KeyError("x")

    with pytest.raises(KeyError):
        assert [item async for item in end_on_error(broken())] == []
