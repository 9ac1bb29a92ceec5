"""Health probe of the bus: PING and PONG over one lasting, authenticated connection.

A new connection for each check would judge the queue of new connections instead of the server:
another user of the machine who fills that queue would have a healthy bus restarted.
"""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from svc_common.logs import get_logger

_HOST: Final = "127.0.0.1"
_LINE_END: Final = b"\r\n"
_LINE_LIMIT_BYTES: Final = 1024 * 1024
"""More than the server's greeting, the longest line that this user gets."""


@dataclass(frozen=True, slots=True)
class BusLogin:
    """Loopback port of the bus, and the user that connects to it."""

    port: int
    user: str
    password: str = field(repr=False)


class BusProbe:
    """Liveness probe of the bus: PING over one connection, reopened once it has ended.

    Args:
        login: port and user.
        on_pong: called at each PONG of the server, on the event loop.

    Example:
        probe = BusProbe(BusLogin(4222, "supervisor", "secret"), lambda: print("alive"))
        await probe.ping(15.0)
        probe.close()
    """

    def __init__(self, login: BusLogin, on_pong: Callable[[], None]) -> None:
        self._login = login
        self._on_pong = on_pong
        self._session: _Session | None = None

    async def ping(self, limit_s: float) -> bool:
        """Send PING, on a new connection if there is none; return whether a PONG came in time.

        A connection without an answer stays open, so that its late PONG still counts.

        Args:
            limit_s: limit of connection and answer together, in seconds.
        """
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(limit_s):
                if self._session is None or self._session.ended:
                    loop = asyncio.get_running_loop()
                    _, self._session = await loop.create_connection(
                        lambda: _Session(self._login, self._on_pong), _HOST, self._login.port
                    )
                return await self._session.ping()
        return False

    def close(self) -> None:
        """Close the connection; may be called twice."""
        if self._session is not None:
            self._session.close()


class _Session(asyncio.Protocol):
    """One connection in the text protocol of NATS: greeting, credentials, PING and PONG."""

    def __init__(self, login: BusLogin, on_pong: Callable[[], None]) -> None:
        self._login = login
        self._on_pong = on_pong
        self._transport: asyncio.Transport | None = None
        self._unread = b""
        self._greeted = False
        self._answered: asyncio.Future[bool] | None = None
        self.ended = False

    async def ping(self) -> bool:
        """Send PING unless one is unanswered; wait for PONG; False if the connection ends first."""
        if self.ended:
            return False
        if self._answered is None or self._answered.done():
            self._answered = asyncio.get_running_loop().create_future()
            if self._greeted:  # else it follows the greeting
                self._write(b"PING")
        return await asyncio.shield(self._answered)

    def close(self) -> None:
        """Close the connection at once; `ping` returns False."""
        if self._transport is not None:
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport of the new connection."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Handle each complete line from the bus; close the connection if a line is too long."""
        *lines, self._unread = (self._unread + data).split(_LINE_END)
        for line in lines:
            self._handle(line)
        if len(self._unread) > _LINE_LIMIT_BYTES:  # no bus
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        """Mark the session as ended; complete a waiting probe as not answered."""
        self.ended = True
        self._complete(answered=False)

    def _handle(self, line: bytes) -> None:
        operation, _, rest = line.partition(b" ")
        match operation.upper():
            case b"INFO" if not self._greeted:  # a later one tells of other servers
                self._greeted = True
                self._write(b"CONNECT " + self._credentials())
                self._write(b"PING")
            case b"PING":
                self._write(b"PONG")
            case b"PONG":
                self._on_pong()
                self._complete(answered=True)
            case b"-ERR":  # the server closes the connection
                get_logger().warning("bus refuses its probe", error=rest.decode(errors="replace"))

    def _credentials(self) -> bytes:
        fields = {"user": self._login.user, "pass": self._login.password, "name": "supervisor"}
        options = {"verbose": False, "pedantic": False, "lang": "python", "version": "1"}
        return json.dumps({**fields, **options}).encode()

    def _write(self, line: bytes) -> None:
        if self._transport is not None:
            self._transport.write(line + _LINE_END)

    def _complete(self, *, answered: bool) -> None:
        if self._answered is not None and not self._answered.done():
            self._answered.set_result(answered)
