"""One connection to NATS that stays: it reconnects for ever and says so.

All methods belong to the loop that opened it. Writes are collected during one turn of the loop and
sent together. While the server is away, `publish` drops and requests fail at once with
`DisconnectedError`: whoever must not lose a message repeats it after `wait_connected`
(`svc_common.messaging.nats_jetstream` does).
"""

import asyncio
import itertools
import secrets
import ssl
from collections.abc import Callable, Mapping
from typing import Final

from svc_common.errors import (
    FailedPreconditionError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
)
from svc_common.logs import get_logger
from svc_common.messaging import nats_wire as wire
from svc_common.messaging.nats_greeting import encrypted, introduction, untrusted
from svc_common.messaging.nats_heartbeat import Heartbeat
from svc_common.messaging.nats_login import ANYBODY, Login, Server, servers_of
from svc_common.messaging.nats_requests import DisconnectedError, NoRespondersError, RequestTable
from svc_common.subjects import check_id

FIRST_RETRY_S: Final = 0.01
"""The bus is starting beside us: look again soon."""
LAST_RETRY_S: Final = 2.0
CONNECT_TIMEOUT_S: Final = 5.0
_WRITE_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""Beyond so many unsent bytes `writable` waits."""

Receive = Callable[[str, str, bytes, bytes], None]
"""Called with subject, reply, headers and payload of a message."""


class Connection(asyncio.Protocol):
    """A client connection.

    Args:
        url: of one server or several, see `nats_login.servers_of`.
        login: used if the address holds no user information.
        name: how the server lists this client.
        tls: encrypts the connection; without it, a server that wants encryption is refused.
        tls_first: the server speaks TLS from the first byte on (`handshake_first`); else it says
            first, in plain text, that it does.
    """

    def __init__(
        self,
        url: str,
        *,
        login: Login = ANYBODY,
        name: str = "",
        tls: ssl.SSLContext | None = None,
        tls_first: bool = False,
    ) -> None:
        self._servers = itertools.cycle(servers_of(url, login))
        self._name = name
        self._tls = tls
        self._tls_first = tls_first
        self._hello: asyncio.Future[Mapping[str, object]] | None = None
        self._forbidden: set[str] = set()
        self._transport: asyncio.Transport | None = None
        self._parser = self._new_parser()
        self._up = asyncio.Event()
        self._down = asyncio.Event()
        self._down.set()
        self._lost = asyncio.Event()
        self._welcome: asyncio.Future[None] | None = None
        self._outgoing: list[bytes] = []
        self._writable = asyncio.Event()
        self._writable.set()
        self._sids = itertools.count(1)
        self._subscriptions: dict[int, tuple[str, Receive]] = {}
        # A user's permissions keep its answers from other users: they go below its own name.
        own = f"{check_id('user of the bus', login.user)}." if login.user else ""
        self._inbox = f"_INBOX.{own}{secrets.token_hex(8)}"
        self._requests = RequestTable()
        self._inboxes = itertools.count(1)
        self._heartbeat = Heartbeat(self._ping, self._silent)
        self._keeper: asyncio.Task[None] | None = None
        self._reconnected: list[Callable[[], None]] = []
        self._closed = False
        self.max_payload = 1024 * 1024

    # -- life ---------------------------------------------------------------------------------

    async def open(self) -> None:
        """Connect, waiting for the server as long as it takes.

        Raises:
            UnauthenticatedError: the server refuses the credentials.
            FailedPreconditionError: one side wants encryption and the other does not have it, or
                the server's certificate is not to be trusted.
        """
        self._loop = asyncio.get_running_loop()
        self.subscribe(f"{self._inbox}.*", self._answered)
        first: asyncio.Future[None] = self._loop.create_future()
        self._keeper = self._loop.create_task(self._keep(first), name="nats connection")
        try:
            await first  # has a result as soon as the server has accepted us
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Send what is waiting and close; may be called twice."""
        self._closed = True
        if self._keeper is not None:
            keeper, self._keeper = self._keeper, None
            self._flush()
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)
        if self._transport is not None:
            self._transport.close()
        self._requests.fail_all()
        self._down.set()
        self._up.set()  # whoever waits for it finds the connection closed
        self._heartbeat.stop()
        for callback in self._reconnected:
            callback()

    @property
    def closed(self) -> bool:
        """Whether `aclose` was called."""
        return self._closed

    @property
    def connected(self) -> bool:
        """Whether the server can be reached now."""
        return self._up.is_set() and not self._closed

    async def wait_connected(self) -> None:
        """Wait until the server can be reached.

        Raises:
            UnavailableError: the connection was closed.
        """
        if self._closed:
            raise UnavailableError("the connection to the bus is closed")
        await self._up.wait()
        if self._closed:
            raise UnavailableError("the connection to the bus is closed")

    async def wait_disconnected(self) -> None:
        """Wait until the server cannot be reached."""
        await self._down.wait()

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Have `callback` called after each reconnection and at the close; give its removal."""
        self._reconnected.append(callback)
        return lambda: self._reconnected.remove(callback)

    # -- messages -----------------------------------------------------------------------------

    def publish(
        self, subject: str, payload: bytes, *, reply: str = "", headers: bytes = b""
    ) -> bool:
        """Send a message; False if the server is away and it was dropped.

        Raises:
            ResourceExhaustedError: it is larger than the server allows.
        """
        if len(payload) + len(headers) > self.max_payload:
            raise ResourceExhaustedError(
                f"a message of {len(payload)} bytes is larger than the bus allows "
                f"({self.max_payload})"
            )
        if not self.connected:
            return False
        self._write(wire.publish(subject, reply, headers, payload))
        return True

    @property
    def congested(self) -> bool:
        """Whether so much is unsent that whoever can should wait."""
        return not self._writable.is_set()

    async def writable(self) -> None:
        """Wait while too much is unsent."""
        if not self._writable.is_set():
            await self._writable.wait()

    def subscribe(self, subject: str, receive: Receive) -> int:
        """Listen to a subject or pattern, also after reconnections; give the subscription's id."""
        sid = next(self._sids)
        self._subscriptions[sid] = (subject, receive)
        if self.connected:
            self._write(wire.subscribe(subject, sid))
        return sid

    def check_allowed(self, subject: str) -> None:
        """Return unless the server has said that this user must not listen to ``subject``.

        Raises:
            PermissionDeniedError: it has.
        """
        if subject in self._forbidden:
            raise PermissionDeniedError(f"the bus forbids this user to listen to {subject}")

    def unsubscribe(self, sid: int) -> None:
        """Stop listening; nothing happens if that was done already."""
        if self._subscriptions.pop(sid, None) is not None and self.connected:
            self._write(wire.unsubscribe(sid))

    async def drain(self, sid: int) -> None:
        """Stop listening, but take what the server has sent already.

        Raises:
            UnavailableError: it is away; what it had sent is lost.
        """
        if self.connected and sid in self._subscriptions:
            self._write(wire.unsubscribe(sid))
        try:
            await self.flush()
        finally:
            self.unsubscribe(sid)

    def new_inbox(self) -> str:
        """Give a subject that only this connection listens to, once it subscribes to it."""
        return f"{self._inbox}-{next(self._inboxes)}"

    def request(
        self, subject: str, payload: bytes, *, timeout_s: float, headers: bytes = b""
    ) -> asyncio.Future[tuple[bytes, bytes]]:
        """Send a message and give the future of its answer: headers and payload.

        The future raises `DisconnectedError`, `NoRespondersError` or `RequestTimeoutError` (up to
        a second late: one timer serves all requests).
        """
        token, future = self._requests.add(timeout_s, subject)
        if not self.publish(subject, payload, reply=f"{self._inbox}.{token}", headers=headers):
            self._requests.refuse(token)
        return future

    async def flush(self) -> None:
        """Return once the server has handled everything sent before.

        Raises:
            UnavailableError: it is away.
        """
        # Nobody listens to our own empty inbox name: the server answers so at once.
        try:
            await self.request(self.new_inbox(), b"", timeout_s=CONNECT_TIMEOUT_S)
        except NoRespondersError:
            return

    # -- asyncio.Protocol ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        transport.set_write_buffer_limits(_WRITE_LIMIT_BYTES)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        try:
            self._parser.feed(data)
        except wire.ProtocolError as error:
            get_logger().error("bus protocol broken", error=error.message)
            if self._transport is not None:
                self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._transport = None
        if not self._closed:
            self._up.clear()
        self._down.set()
        self._lost.set()
        self._writable.set()
        self._outgoing.clear()
        for waited in (self._hello, self._welcome):
            if waited is not None and not waited.done():
                waited.set_exception(DisconnectedError("the bus closed the connection"))
                waited.exception()  # seen: only one of the two is waited for
        self._requests.fail_all()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._writable.set()

    # -- inside -------------------------------------------------------------------------------

    async def _keep(self, first: asyncio.Future[None]) -> None:
        """Connect again whenever the connection is lost."""
        wait_s = FIRST_RETRY_S
        for server in self._servers:
            try:
                await self._connect_once(server)
            except (UnauthenticatedError, FailedPreconditionError) as error:
                if not first.done():
                    first.set_exception(error)
                    return
                get_logger().error("bus cannot be used", error=error.message)
            except (OSError, TimeoutError, UnavailableError) as error:
                # It is not there yet, or gone again: the next round tries.
                if isinstance(error, ssl.SSLError):
                    get_logger().warning("bus connection not encrypted", error=str(error))
            else:
                if not first.done():
                    first.set_result(None)
                wait_s = FIRST_RETRY_S
                await self._lost.wait()
                get_logger().warning("bus connection lost")
            await asyncio.sleep(wait_s)
            wait_s = min(wait_s * 2, LAST_RETRY_S)

    async def _connect_once(self, server: Server) -> None:
        self._lost.clear()
        self._parser = self._new_parser()
        self._welcome = self._loop.create_future()
        self._hello = self._loop.create_future()
        first = self._tls if self._tls_first else None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._loop.create_connection(
                    lambda: self, server.host, server.port, ssl=first
                )
                hello = await self._hello
                assert self._transport is not None, "it has just said hello"
                if first is None:
                    self.connection_made(
                        await encrypted(self._transport, self, self._tls, server.host, hello)
                    )
                subjects = {sid: subject for sid, (subject, _) in self._subscriptions.items()}
                self._transport.write(introduction(self._name, server.credentials, subjects))
                await self._welcome
        except BaseException as error:
            if self._transport is not None:
                self._transport.abort()
                self._transport = None
            if isinstance(error, ssl.SSLCertVerificationError):
                raise untrusted(server.host, server.port, error) from error
            raise

    def _new_parser(self) -> wire.Parser:
        return wire.Parser(
            on_message=self._received,
            on_info=self._informed,
            on_ping=self._pinged,
            on_pong=self._ponged,
            on_error=self._refused,
        )

    def _informed(self, info: Mapping[str, object]) -> None:
        limit = info.get("max_payload")
        if isinstance(limit, int):
            self.max_payload = limit
        if self._hello is not None and not self._hello.done():
            self._hello.set_result(info)

    def _pinged(self) -> None:
        if self._transport is not None:
            self._transport.write(wire.PONG)

    def _ponged(self) -> None:
        self._heartbeat.answered()
        if self._welcome is None or self._welcome.done():
            return
        self._welcome.set_result(None)
        self._up.set()
        self._down.clear()
        self._heartbeat.start()
        for callback in tuple(self._reconnected):
            callback()

    def _ping(self) -> None:
        if self._transport is not None:
            self._transport.write(wire.PING)

    def _silent(self) -> None:
        if self._transport is not None:
            get_logger().warning("bus does not answer")
            self._transport.abort()

    def _refused(self, text: str) -> None:
        lower = text.lower()
        if "authorization" in lower or "authentication" in lower:
            error = UnauthenticatedError(f"the bus refuses the credentials: {text}")
            if self._welcome is not None and not self._welcome.done():
                self._welcome.set_exception(error)
                return
        forbidden = wire.forbidden(text)
        if forbidden is not None and forbidden.to_publish:
            self._requests.forbid(forbidden.subject)
        elif forbidden is not None:
            self._forbidden.add(forbidden.subject)
        get_logger().warning("bus refused an operation", error=text)

    def _received(self, sid: int, subject: str, reply: str, headers: bytes, payload: bytes) -> None:
        found = self._subscriptions.get(sid)
        if found is not None:
            found[1](subject, reply, headers, payload)

    def _answered(self, subject: str, _reply: str, headers: bytes, payload: bytes) -> None:
        self._requests.answer(subject.rpartition(".")[2], headers, payload)

    def _write(self, data: bytes) -> None:
        if not self._outgoing:
            self._loop.call_soon(self._flush)
        self._outgoing.append(data)

    def _flush(self) -> None:
        if self._outgoing and self._transport is not None:
            self._transport.write(b"".join(self._outgoing))
        self._outgoing.clear()
