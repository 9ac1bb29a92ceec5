"""One listening socket that serves an ASGI application with uvicorn's HTTP protocol.

uvicorn's own `Server` is made to own a process: it handles signals and wakes up ten times a
second. Its protocol class needs neither, and many of these listeners live in one manager.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, Final

import h11
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from svc_manager.web.security import CERTIFICATE_NAME

BACKLOG: Final = 128
CONNECTIONS_LIMIT: Final = 2_000
"""Of one listener; beyond, requests are answered with 503."""
HEAD_TIMEOUT_S: Final = 10.0
"""How long a client may take for the head of a request, and for its half of a TLS handshake."""
LINGER_S: Final = 1.0
"""How long a client may go on sending after its request was refused."""
HEAD_LIMIT_BYTES: Final = 32 * 1024
"""Longest head of a request."""


class _PatientToAPoint(H11Protocol):
    """Closes connections whose client says nothing, or spells its request out for ever.

    It also tells the application which client certificate was shown.
    """

    def __init__(
        self, config: Config, state: ServerState, app_state: dict[str, Any], head_timeout_s: float
    ) -> None:
        super().__init__(config, state, app_state)
        self._head_timeout_s = head_timeout_s

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        name = _common_name(transport.get_extra_info("peercert"))
        self.app_state = {**self.app_state, CERTIFICATE_NAME: name}
        self._overdue: asyncio.TimerHandle | None = None
        self._talking: asyncio.TimerHandle | None = None
        self._begin_head()

    def handle_events(self) -> None:
        """Let time run from the first byte of a head to its last; more bytes do not extend it."""
        super().handle_events()
        if self.conn.their_state is not h11.IDLE:
            self._end_head()
        elif self._overdue is None and self.conn.trailing_data[0]:
            self._begin_head()

    def on_response_complete(self) -> None:
        """Hang up on a client that goes on with a body after it was answered."""
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            # Not at once: that would take the answer from one who is about to read it.
            self._talking = self.loop.call_later(LINGER_S, self._hang_up, self.cycle)

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._end_head()
        if self._talking is not None:
            self._talking.cancel()
        super().connection_lost(exc)

    def _hang_up(self, cycle: RequestResponseCycle) -> None:
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self._give_up()

    def _begin_head(self) -> None:
        self._overdue = self.loop.call_later(self._head_timeout_s, self._give_up)

    def _end_head(self) -> None:
        if self._overdue is not None:
            self._overdue.cancel()
            self._overdue = None

    def _give_up(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


def _common_name(certificate: object) -> str:
    """Return the common name in what `ssl` tells of a certificate; empty: there is none."""
    if not isinstance(certificate, dict):
        return ""
    parts = (pair for part in certificate.get("subject", ()) for pair in part)
    return next((str(value) for name, value in parts if name == "commonName"), "")


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
        cls,
        app: ASGIApp,
        bound: socket.socket,
        stopped: asyncio.Event,
        tls: ssl.SSLContext | None = None,
        *,
        head_timeout_s: float = HEAD_TIMEOUT_S,
    ) -> HttpListener:
        """Serve ``app`` on ``bound`` and return when connections are accepted.

        Args:
            app: the application.
            bound: a bound stream socket, which this listener closes.
            stopped: set by `close`; answers without an end wait for it.
            tls: encrypts it; None: it speaks plain HTTP.
            head_timeout_s: how long a client may take for the head of a request, and for its half
                of a TLS handshake, in seconds.
        """
        config = Config(
            app,
            access_log=False,
            date_header=False,
            h11_max_incomplete_event_size=HEAD_LIMIT_BYTES,
            limit_concurrency=CONNECTIONS_LIMIT,
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
            lambda: _PatientToAPoint(config, state, {}, head_timeout_s),
            sock=bound,
            backlog=BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else head_timeout_s,
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
