"""One listening socket that serves an ASGI application with uvicorn's HTTP protocol.

uvicorn's own `Server` is made to own a process: it handles signals and wakes up ten times a
second. Its protocol class needs neither, and many of these listeners live in one manager.
"""

from __future__ import annotations

import asyncio
import socket
from typing import Final

from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

BACKLOG: Final = 128


class HttpListener:
    """A server that is running from `start` to `close`.

    Belongs to the event loop it was started on.
    """

    def __init__(self, server: asyncio.Server, state: ServerState, stopped: asyncio.Event) -> None:
        self._server = server
        self._state = state
        self._stopped = stopped

    @classmethod
    async def start(
        cls, app: ASGIApp, bound: socket.socket, stopped: asyncio.Event
    ) -> HttpListener:
        """Serve ``app`` on ``bound`` and return when connections are accepted.

        Args:
            app: the application.
            bound: a bound stream socket, which this listener closes.
            stopped: set by `close`; answers without an end wait for it.
        """
        config = Config(
            app,
            access_log=False,
            date_header=False,
            http="h11",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            proxy_headers=False,
            server_header=False,
            ws="none",
        )
        config.load()
        state = ServerState()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: H11Protocol(config, state, {}), sock=bound, backlog=BACKLOG
        )
        return cls(server, state, stopped)

    @property
    def port(self) -> int:
        """Port that it listens on."""
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def busy(self) -> bool:
        """Whether requests are in flight."""
        return bool(self._state.tasks)

    def close(self) -> None:
        """Free the port at once; requests in flight still get their answers, live ones end."""
        self._stopped.set()
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()

    async def drain(self, grace_s: float) -> None:
        """Wait for the requests in flight after `close`; cancel what lasts longer.

        Args:
            grace_s: longest wait, in seconds.
        """
        tasks = set(self._state.tasks)
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=grace_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
