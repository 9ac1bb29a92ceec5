"""A refusal waits for what is on its way, but not for ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from svc_common.client_streams import MOST_MESSAGES, read_to_end


async def counted(count: int, seen: list[int]) -> AsyncIterator[int]:
    for number in range(count):
        seen.append(number)
        yield number


async def test_what_is_left_is_read() -> None:
    seen: list[int] = []

    await read_to_end(counted(3, seen))

    assert seen == [0, 1, 2]


async def test_nobody_is_read_for_ever() -> None:
    seen: list[int] = []

    await read_to_end(counted(10 * MOST_MESSAGES, seen))

    assert len(seen) == MOST_MESSAGES


async def test_a_broken_stream_is_at_its_end() -> None:
    seen: list[int] = []

    async def broken() -> AsyncIterator[int]:
        async for number in counted(3, seen):
            yield number
        raise ConnectionResetError

    await asyncio.wait_for(read_to_end(broken()), 10)

    assert seen == [0, 1, 2]
