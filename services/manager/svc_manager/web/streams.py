"""Streams of unlimited length that end with their listener."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final, TypeVar

from svc_common.errors import ServiceError
from svc_common.logs import get_logger

HEARTBEAT_S: Final = 15.0
"""Interval of heartbeats on an idle stream, so that proxies and browsers keep it open."""

Item = TypeVar("Item")


async def take_until(
    stopped: Callable[[], Awaitable[None]],
    items: AsyncGenerator[Item, None],
    heartbeat_s: float | None = None,
) -> AsyncGenerator[Item | None, None]:
    """Yield ``items`` until they end or ``stopped`` returns, None as a heartbeat; close them.

    Args:
        stopped: waits until the listener closes.
        items: source of the stream.
        heartbeat_s: yield None after this idle time, in seconds; None = never.
    """
    end: asyncio.Future[Any] = asyncio.ensure_future(_coroutine(stopped))
    async with aclosing(items):
        step: asyncio.Future[Any] | None = None
        try:
            while True:
                step = step or asyncio.ensure_future(anext(items, None))
                done, _ = await asyncio.wait(
                    {step, end}, timeout=heartbeat_s, return_when=asyncio.FIRST_COMPLETED
                )
                if end in done:
                    return
                if step not in done:
                    yield None
                    continue
                item = step.result()
                step = None
                if item is None:
                    return
                yield item
        finally:
            await _cancel(end, step)


async def end_on_error(items: AsyncGenerator[Item, None]) -> AsyncGenerator[Item, None]:
    """Yield ``items``; at a `ServiceError` log it and end the stream without raising.

    A response that has begun can no longer carry an error; the client requests the rest anew.
    """
    async with aclosing(items):
        try:
            async for item in items:
                yield item
        except ServiceError as error:
            get_logger().info("stream ended early", error=error.message)


async def _coroutine(stopped: Callable[[], Awaitable[None]]) -> None:
    await stopped()


async def _cancel(*futures: asyncio.Future[Any] | None) -> None:
    pending = [future for future in futures if future is not None]
    for future in pending:
        future.cancel()
    # A generator cannot be closed while a step of it is still being cancelled.
    await asyncio.gather(*pending, return_exceptions=True)
