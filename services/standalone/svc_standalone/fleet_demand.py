"""Demand for the fleet: the manager asks for it when a pool has platforms besides this machine."""

import asyncio
import socket


class FleetDemand:
    """Parent's end of a pair of sockets, over which the manager sends a byte when it needs a fleet.

    Attributes:
        child_end: end that each run of the manager inherits.
    """

    def __init__(self) -> None:
        self._end, self.child_end = socket.socketpair()
        self._end.setblocking(False)  # noqa: FBT003 - its only way

    async def wait(self) -> None:
        """Wait for the manager's demand to start the fleet service."""
        await asyncio.get_running_loop().sock_recv(self._end, 1)

    def close(self) -> None:
        """Close both ends; may be called twice."""
        self._end.close()
        self.child_end.close()
