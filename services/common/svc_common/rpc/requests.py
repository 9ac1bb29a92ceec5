"""Incoming requests that are malformed, or whose call is refused before they have all arrived."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

from svc_common.errors import InvalidArgumentError

MOST_MESSAGES: Final = 256
MOST_S: Final = 2.0

Read = Callable[[bytes], Any]
"""Makes a message of bytes; a function of generated code."""


@dataclass(frozen=True, slots=True)
class MalformedRequest:
    """What was sent instead of a message."""

    reason: str


def tolerant(read: Read | None) -> Read | None:
    """Return a reader that never raises: what is no message becomes an `MalformedRequest`."""
    if read is None:
        return None

    def read_or_say(payload: bytes) -> Any:  # noqa: ANN401 - any message
        try:
            return read(payload)
        except Exception as error:  # noqa: BLE001 - rim: protobuf does not say what it may raise
            return MalformedRequest(str(error))

    return read_or_say


def readable(request: Any) -> Any:  # noqa: ANN401 - any message, or a stream of them
    """Return the request, or the stream of requests, that a handler may believe.

    Raises:
        InvalidArgumentError: it is no message; of a stream, when that one's turn comes.
    """
    if hasattr(request, "__aiter__"):
        return _each(request)
    if isinstance(request, MalformedRequest):
        raise InvalidArgumentError(
            "request", "must be a message of this method", remedy=request.reason
        )
    return request


async def _each(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield readable(request)


async def read_to_end(requests: AsyncIterator[Any]) -> None:
    """Read and discard what a client sends, up to its end or to the limits; never raises.

    gRPC lets a server refuse at any time. But a client of `grpc.aio` that is just sending learns
    from its own library that its message went nowhere, and calls that INTERNAL, if the refusal is
    not there yet (`_StreamRequestMixin._write`). So messages under way are read before the refusal
    is sent; within limits, because no client may keep a server reading.
    """
    try:
        async with asyncio.timeout(MOST_S):
            for _ in range(MOST_MESSAGES):
                await anext(requests)
    except Exception:  # noqa: BLE001 - rim: whatever a broken stream raises, the call is refused
        return
