"""HTTP listener: one socket that serves an ASGI application with uvicorn's HTTP protocol.

uvicorn's own `Server` owns its process: it handles signals and wakes up ten times a second. Its
protocol class needs neither, and one manager has many listeners.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Any, Final, cast

import h11
from starlette.types import ASGIApp
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from svc_manager.web.listeners.connection_limits import ConnectionLimits, ConnectionQuota
from svc_manager.web.security import CERTIFICATE_NAME

BACKLOG: Final = 128
CONNECTIONS_LIMIT: Final = 2_000
"""Connections of a listener with a quota of its own."""
HEAD_TIMEOUT_S: Final = 10.0
"""Time limit for the head of a request, and for the client's part of a TLS handshake."""
CROWDED_HEAD_TIMEOUT_S: Final = 1.0
"""Time limit for the head of a request on connections that are opened while there are many."""
LINGER_S: Final = 1.0
"""Time for which a client may still send a body after the response to it is complete."""
HEAD_LIMIT_BYTES: Final = 32 * 1024
"""Size limit of an incomplete head of a request."""


class _TimeLimitedProtocol(H11Protocol):
    """HTTP/1.1 protocol that closes idle, slow and surplus connections.

    It also passes the common name of the client certificate to the application.
    """

    def __init__(
        self,
        config: Config,
        state: ServerState,
        app_state: dict[str, Any],
        head_timeout_s: float,
        limits: ConnectionLimits,
    ) -> None:
        super().__init__(config, state, app_state)
        self._head_timeout_s = head_timeout_s
        self._limits = limits
        self._counted = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's
        """Count a new connection, start its timer; if there are too many, abort an idle one."""
        super().connection_made(transport)
        if self._limits.full and not self._limits.evict():
            transport.abort()  # its descriptor is needed for files, the bus and children
        else:
            self._counted = True
            self._limits.opened(transport.get_extra_info("socket").fileno())
            self._limits.idle(self, transport.abort)
        if self._limits.crowded:
            self._head_timeout_s = min(self._head_timeout_s, CROWDED_HEAD_TIMEOUT_S)
        name = _common_name(transport.get_extra_info("peercert"))
        self.app_state = {**self.app_state, CERTIFICATE_NAME: name}
        self._head_timer: asyncio.TimerHandle | None = None
        self._linger_timer: asyncio.TimerHandle | None = None
        self._start_head_timer()

    def handle_events(self) -> None:
        """Parse received bytes; run the time-out while a request's head is incomplete."""
        super().handle_events()
        if self.conn.their_state is not h11.IDLE:
            self._stop_head_timer()
            self._limits.busy(self)
        elif self._head_timer is None and self.conn.trailing_data[0]:
            self._start_head_timer()

    def on_response_complete(self) -> None:
        """After a response, schedule the end of a connection whose client still sends its body."""
        if self._counted:
            self._limits.idle(self, self.transport.abort)
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:
            # Not at once: the client may not have read the response yet.
            self._linger_timer = self.loop.call_later(LINGER_S, self._end_linger, self.cycle)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the connection's timers and uncount it."""
        self._stop_head_timer()
        if self._counted:
            self._counted = False
            self._limits.closed()
            self._limits.busy(self)
        if self._linger_timer is not None:
            self._linger_timer.cancel()
        super().connection_lost(exc)

    def _end_linger(self, cycle: RequestResponseCycle) -> None:
        if self.cycle is cycle and self.conn.their_state is h11.SEND_BODY:
            self._close()

    def _start_head_timer(self) -> None:
        self._head_timer = self.loop.call_later(self._head_timeout_s, self._close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _close(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class _CountedAccepts:
    """Listening socket whose accepted connections are counted before their TLS handshake."""

    def __init__(self, bound: socket.socket, limits: ConnectionLimits) -> None:
        self._bound = bound
        self._limits = limits

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept and count a connection; return it with the address of the client."""
        connection, address = self._bound.accept()
        self._limits.accepted(connection)
        return connection, address

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - anything of a socket
        return getattr(self._bound, name)


def _common_name(certificate: object) -> str:
    """Return the common name of a decoded TLS client certificate; empty: it has none."""
    if not isinstance(certificate, dict):
        return ""
    parts = (pair for part in certificate.get("subject", ()) for pair in part)
    return next((str(value) for name, value in parts if name == "commonName"), "")


class HttpListener:
    """HTTP server on one bound socket, with limits of time and connections."""

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
        limits: ConnectionLimits | None = None,
    ) -> HttpListener:
        """Serve ``app`` over HTTP/1.1 on a bound socket; return once connections are accepted.

        Args:
            app: the application.
            bound: a bound stream socket, which the listener closes.
            stopped: set by `close`; streaming responses wait for it.
            tls: TLS of the listener; None: plain HTTP.
            head_timeout_s: time limit for the head of a request, and for the client's part of a
                TLS handshake, in seconds.
            limits: counters of the connections of all listeners; None: of this one only.
        """
        counted = limits or ConnectionLimits(ConnectionQuota.of_descriptors(2 * CONNECTIONS_LIMIT))
        config = Config(
            app,
            access_log=False,
            date_header=False,
            h11_max_incomplete_event_size=HEAD_LIMIT_BYTES,
            limit_concurrency=None,  # it would refuse callers with a token, too
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
            lambda: _TimeLimitedProtocol(config, state, {}, head_timeout_s, counted),
            sock=bound if tls is None else cast("socket.socket", _CountedAccepts(bound, counted)),
            backlog=BACKLOG,
            ssl=tls,
            ssl_handshake_timeout=None if tls is None else head_timeout_s,
        )
        return cls(server, state, stopped)

    @property
    def port(self) -> int:
        """Port of the socket."""
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def busy(self) -> bool:
        """True if requests are in progress."""
        return bool(self._state.tasks)

    def close(self) -> None:
        """Close the listening socket and end streams; requests in progress still get responses."""
        self._stopped.set()
        self._server.close()
        for connection in list(self._state.connections):
            connection.shutdown()

    async def drain(self, grace_s: float) -> None:
        """After `close`, wait ``grace_s`` seconds for requests in progress; then cancel them."""
        tasks = set(self._state.tasks)
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=grace_s)
        for task in late:
            task.cancel()
        await asyncio.gather(*late, return_exceptions=True)
