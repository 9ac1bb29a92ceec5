"""Incoming requests that are malformed, or whose call is refused before they have all arrived."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any, Final

from svc_common.errors import InvalidArgumentError

MAX_DRAINED_MESSAGES: Final = 256
MAX_DRAIN_S: Final = 2.0

Read = Callable[[bytes], Any]
"""Deserializer of a message; a function of generated code."""


@dataclass(frozen=True, slots=True)
class MalformedRequest:
    """Placeholder of a request that could not be deserialized."""

    reason: str


def capture_malformed(read: Read | None) -> Read | None:
    """Wrap a deserializer so that it returns a `MalformedRequest` instead of raising.

    gRPC would answer an error of the deserializer with UNKNOWN and a traceback.
    """
    if read is None:
        return None

    def read_or_capture(payload: bytes) -> Any:  # noqa: ANN401 - any message
        try:
            return read(payload)
        except Exception as error:  # noqa: BLE001 - protobuf does not document which errors it raises
            return MalformedRequest(str(error))

    return read_or_capture


def checked_requests(request: Any) -> Any:  # noqa: ANN401 - any message, or a stream of them
    """Return a request, or a checked iterator of a stream; raise InvalidArgumentError if malformed.

    Raises:
        InvalidArgumentError: the request is malformed; in a stream, when that message is read.
    """
    if hasattr(request, "__aiter__"):
        return _each(request)
    if isinstance(request, MalformedRequest):
        raise InvalidArgumentError(
            "request", "must be a message of this method", remedy=request.reason
        )
    return request


class RequestMessages:
    """Checked messages of a request stream that notes whether reading has begun.

    Args:
        requests: the stream.
    """

    def __init__(self, requests: AsyncIterator[Any]) -> None:
        self._requests = requests
        self.begun = False
        """Whether a message was asked for: the caller was admitted."""

    def __aiter__(self) -> AsyncIterator[Any]:
        """Return the iterator itself."""
        return self

    async def __anext__(self) -> Any:  # noqa: ANN401 - any message
        """Return the next message and mark the stream as begun; raise for a malformed message.

        Raises:
            StopAsyncIteration: there is none.
            InvalidArgumentError: it is malformed.
        """
        self.begun = True
        return checked_requests(await anext(self._requests))


async def _each(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield checked_requests(request)


async def read_to_end(requests: AsyncIterator[Any]) -> None:
    """Read and discard the rest of a client's stream, within limits, before a refusal.

    gRPC lets a server refuse at any time. But a client of `grpc.aio` that is just sending learns
    from its own library that its message went nowhere, and calls that INTERNAL, if the refusal is
    not there yet (`_StreamRequestMixin._write`). So messages under way are read before the refusal
    is sent; within limits, because no client may keep a server reading.
    """
    try:
        async with asyncio.timeout(MAX_DRAIN_S):
            for _ in range(MAX_DRAINED_MESSAGES):
                await anext(requests)
    except Exception:  # noqa: BLE001 - the call is refused, whatever error a broken stream raises
        return
