"""Event loop that connects chosen host names to Unix sockets.

The client of the bus speaks TCP only. Where the bus is reached through a forwarded Unix socket, its
connections are routed here, so that no port of the machine is opened that other users could try.
"""

import asyncio
import selectors
from pathlib import Path
from typing import Any, Final

from svc_common.errors import FailedPreconditionError

ROUTED_SUFFIX: Final = ".socket.invalid"
"""End of the host names that can be routed; no name server knows such a name."""


class SocketLoop(asyncio.SelectorEventLoop):
    """Event loop whose connections to routed host names go to Unix sockets.

    Args:
        selector: of the loop; None: the system's default.
    """

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        super().__init__(selector)
        self._routes: dict[object, str] = {}

    def route(self, host: str, path: Path) -> None:
        """Connect a host name to a Unix socket from now on; an earlier route is replaced."""
        self._routes[host] = str(path)

    async def create_connection(
        self,
        protocol_factory: Any,  # noqa: ANN401 - the overloads of asyncio are passed on unchanged
        host: Any = None,  # noqa: ANN401 - as above
        port: Any = None,  # noqa: ANN401 - as above
        **options: Any,  # noqa: ANN401 - as above
    ) -> Any:  # noqa: ANN401 - as above
        """Connect to a host and port, or to the Unix socket that the host is routed to."""
        if (path := self._routes.get(host)) is not None:
            return await self.create_unix_connection(protocol_factory, path)
        return await super().create_connection(protocol_factory, host, port, **options)


def route_to_socket(host: str, path: Path) -> None:
    """Route a host name of the running loop to a Unix socket; raise unless it is a `SocketLoop`.

    Args:
        host: ends with `ROUTED_SUFFIX`.
        path: of the socket; it need not exist yet.

    Raises:
        FailedPreconditionError: the running loop is no `SocketLoop`.
    """
    assert host.endswith(ROUTED_SUFFIX), host
    loop = asyncio.get_running_loop()
    if not isinstance(loop, SocketLoop):
        raise FailedPreconditionError(
            f"the event loop must be a SocketLoop to connect to sockets, got {type(loop).__name__}"
        )
    loop.route(host, path)
