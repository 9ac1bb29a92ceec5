"""Request of the manager to start the fleet service, which only other platforms than local need."""

import asyncio
import socket


class FleetDemand:
    """Socket pair over which the manager asks the supervisor, by one byte, for the fleet service.

    Attributes:
        child_end: end that each run of the manager inherits.
    """

    def __init__(self) -> None:
        self._end, self.child_end = socket.socketpair()
        self._end.setblocking(False)  # noqa: FBT003 - its only way

    async def wait(self) -> None:
        """Wait until the manager requests the start of the fleet service."""
        await asyncio.get_running_loop().sock_recv(self._end, 1)

    def close(self) -> None:
        """Close both ends; may be called twice."""
        self._end.close()
        self.child_end.close()
