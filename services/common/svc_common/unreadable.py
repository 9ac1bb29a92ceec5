"""Requests that are no messages: gRPC would answer UNKNOWN with a traceback; we say what it is."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from svc_common.errors import InvalidArgumentError

Read = Callable[[bytes], Any]
"""Makes a message of bytes; a function of generated code."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """What was sent instead of a message."""

    reason: str


def tolerant(read: Read | None) -> Read | None:
    """Return a reader that never raises: what is no message becomes an `Unreadable`."""
    if read is None:
        return None

    def read_or_say(payload: bytes) -> Any:  # noqa: ANN401 - any message
        try:
            return read(payload)
        except Exception as error:  # noqa: BLE001 - rim: protobuf does not say what it may raise
            return Unreadable(str(error))

    return read_or_say


def readable(request: Any) -> Any:  # noqa: ANN401 - any message, or a stream of them
    """Return the request, or the stream of requests, that a handler may believe.

    Raises:
        InvalidArgumentError: it is no message; of a stream, when that one's turn comes.
    """
    if hasattr(request, "__aiter__"):
        return _each(request)
    if isinstance(request, Unreadable):
        raise InvalidArgumentError(
            "request", "must be a message of this method", remedy=request.reason
        )
    return request


async def _each(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield readable(request)
