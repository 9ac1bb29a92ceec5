"""End of an agent whose connection to the bus stays cut, or whose credentials were revoked."""

from collections.abc import Awaitable, Callable
from typing import Final

from svc_common.clock import Clock
from svc_common.tasks import StoppedError, result_unless

SILENCE_EXIT_CODE: Final = 75
"""Exit code of an agent that has ended itself by silence: a temporary failure (sysexits.h)."""

REFUSED_EXIT_CODE: Final = 77
"""Exit code of an agent whose credentials were revoked: no permission (sysexits.h)."""
REFUSED_LIMIT_S: Final = 5.0
"""Time of refusals after which credentials count as revoked. The bus reads its users from a file
that is written before; a bus that has read them takes milliseconds to admit them."""


async def wait_silent(
    connected: Callable[[], Awaitable[None]],
    disconnected: Callable[[], Awaitable[None]],
    clock: Clock,
    limit_s: float,
) -> None:
    """Wait until the bus has been unreachable for `limit_s` seconds without a break.

    Args:
        connected: waits until the bus is connected.
        disconnected: waits until it is away.
        clock: measures the limit.
        limit_s: longest silence, in seconds.
    """
    while True:
        await disconnected()
        try:
            await result_unless(clock.sleep(limit_s), connected())
        except StoppedError:
            return
