"""What is left of a stream whose call has been refused before its end.

gRPC lets a server refuse at any time. But a client of `grpc.aio` that is just sending learns from
its own library that its message went nowhere, and calls that INTERNAL, if the refusal is not there
yet (`_StreamRequestMixin._write`). So what is on its way is read before the refusal is sent; within
limits, for nobody may keep a server reading what it does not want.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

MOST_MESSAGES: Final = 256
MOST_S: Final = 2.0


async def read_to_end(requests: AsyncIterator[Any]) -> None:
    """Read and forget what a client sends, up to its end or to the limits; never raises."""
    try:
        async with asyncio.timeout(MOST_S):
            for _ in range(MOST_MESSAGES):
                await anext(requests)
    except Exception:  # noqa: BLE001 - rim: whatever a broken stream raises, the call is refused
        return
