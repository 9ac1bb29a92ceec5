"""One connection to NATS that stays: it reconnects for ever and says so.

All methods belong to the loop that opened it. Writes are collected during one turn of the loop and
sent together. While the server is away, `publish` drops and requests fail at once with
`DisconnectedError`: whoever must not lose a message repeats it after `wait_connected`
(`svc_common.messaging.nats_jetstream` does).
"""

import asyncio
import itertools
import re
import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote, urlsplit

from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
)
from svc_common.logs import get_logger
from svc_common.messaging import nats_wire as wire
from svc_common.messaging.nats_requests import DisconnectedError, NoRespondersError, RequestTable
from svc_common.subjects import check_id

FIRST_RETRY_S: Final = 0.01
"""The bus is starting beside us: look again soon."""
LAST_RETRY_S: Final = 2.0
CONNECT_TIMEOUT_S: Final = 5.0
PING_INTERVAL_S: Final = 20.0
"""A connection that does not answer a ping within this time is given up."""
_WRITE_LIMIT_BYTES: Final = 4 * 1024 * 1024
"""Beyond so many unsent bytes `writable` waits."""

_FORBIDDEN: Final = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"')
"""What the server says of a subject that this user must not use; in lower case."""

Receive = Callable[[str, str, bytes, bytes], None]
"""Called with subject, reply, headers and payload of a message."""


@dataclass(frozen=True, slots=True)
class Login:
    """What the server is shown: a user with its password, or a token, or nothing."""

    token: str = field(default="", repr=False)
    user: str = ""
    """One token of a subject: answers to this user's requests go below it."""
    password: str = field(default="", repr=False)


ANYBODY: Final = Login()


class Connection(asyncio.Protocol):
    """A client connection.

    Args:
        url: `nats://host:port` or several of them, separated by commas; user information is a
            token (`nats://token@host`) or user and password.
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
        self._servers = itertools.cycle([_server(part, login) for part in url.split(",")])
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
        self._credentials: Mapping[str, str] = {}
        self._outgoing: list[bytes] = []
        self._outgoing_bytes = 0
        self._writable = asyncio.Event()
        self._writable.set()
        self._sids = itertools.count(1)
        self._subscriptions: dict[int, tuple[str, Receive]] = {}
        # A user's permissions keep its answers from other users: they go below its own name.
        own = f"{check_id('user of the bus', login.user)}." if login.user else ""
        self._inbox = f"_INBOX.{own}{secrets.token_hex(8)}"
        self._requests = RequestTable()
        self._inboxes = itertools.count(1)
        self._pinger: asyncio.TimerHandle | None = None
        self._pong_due = False
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
        if self._pinger is not None:
            self._pinger.cancel()
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
        for host, port, credentials in self._servers:
            self._credentials = credentials
            try:
                await self._connect_once(host, port)
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

    async def _connect_once(self, host: str, port: int) -> None:
        self._lost.clear()
        self._parser = self._new_parser()
        self._welcome = self._loop.create_future()
        self._hello = self._loop.create_future()
        first = self._tls if self._tls_first else None
        try:
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                await self._loop.create_connection(lambda: self, host, port, ssl=first)
                info = await self._hello
                if first is None:
                    await self._agree_on_encryption(host, info)
                self._introduce()
                await self._welcome
        except BaseException as error:
            if self._transport is not None:
                self._transport.abort()
                self._transport = None
            if isinstance(error, ssl.SSLCertVerificationError):
                raise FailedPreconditionError(
                    f"the certificate of the bus at {host}:{port} cannot be trusted "
                    f"({error.verify_message}); check NNI_TLS_CA_FILE"
                ) from error
            raise

    async def _agree_on_encryption(self, host: str, info: Mapping[str, object]) -> None:
        """Encrypt the connection if this side wants it.

        Raises:
            FailedPreconditionError: only one side wants it, or has it.
        """
        if self._tls is None:
            if info.get("tls_required"):
                raise FailedPreconditionError(
                    f"the bus at {host} demands encryption; set NNI_TLS_CA_FILE to its authority"
                )
            return
        if not (info.get("tls_required") or info.get("tls_available")):
            raise FailedPreconditionError(
                f"the bus at {host} does not offer encryption, so no secret is sent to it; add a "
                "tls block to its configuration"
            )
        assert self._transport is not None, "it has just said hello"
        encrypted = await self._loop.start_tls(
            self._transport, self, self._tls, server_hostname=host
        )
        assert encrypted is not None, "a handshake gives a transport or raises"
        encrypted.set_write_buffer_limits(_WRITE_LIMIT_BYTES)
        self._transport = encrypted

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

    def _introduce(self) -> None:
        """Say who this is, and what it listens to."""
        assert self._transport is not None, "the connection has just been made"
        options: dict[str, object] = {
            "verbose": False,
            "pedantic": False,
            "headers": True,
            "no_responders": True,
            "protocol": 1,
            "lang": "python",
            "version": "nni",
            "name": self._name,
            **self._credentials,
        }
        # The server answers PONG only if it accepts CONNECT; all subscriptions go with it.
        subscriptions = [
            wire.subscribe(subject, sid) for sid, (subject, _) in self._subscriptions.items()
        ]
        self._transport.write(b"".join([wire.connect(options), *subscriptions, wire.PING]))

    def _pinged(self) -> None:
        if self._transport is not None:
            self._transport.write(wire.PONG)

    def _ponged(self) -> None:
        self._pong_due = False
        if self._welcome is None or self._welcome.done():
            return
        self._welcome.set_result(None)
        self._up.set()
        self._down.clear()
        if self._pinger is not None:
            self._pinger.cancel()
        self._pinger = self._loop.call_later(PING_INTERVAL_S, self._ping)
        for callback in tuple(self._reconnected):
            callback()

    def _ping(self) -> None:
        if self._transport is None:
            return
        if self._pong_due:
            get_logger().warning("bus does not answer")
            self._transport.abort()
            return
        self._pong_due = True
        self._transport.write(wire.PING)
        self._pinger = self._loop.call_later(PING_INTERVAL_S, self._ping)

    def _refused(self, text: str) -> None:
        lower = text.lower()
        if "authorization" in lower or "authentication" in lower:
            error = UnauthenticatedError(f"the bus refuses the credentials: {text}")
            if self._welcome is not None and not self._welcome.done():
                self._welcome.set_exception(error)
                return
        forbidden = _FORBIDDEN.search(lower)
        if forbidden is not None:
            start, end = forbidden.span(2)
            subject = text[start:end]  # as it was sent: subjects know upper and lower case
            if forbidden[1] == "publish":
                self._requests.forbid(subject)
            else:
                self._forbidden.add(subject)
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


def _server(url: str, login: Login) -> tuple[str, int, Mapping[str, str]]:
    parts = urlsplit(url.strip())
    if parts.scheme not in {"nats", "tls"} or not parts.hostname:
        raise InvalidArgumentError(
            "address of the bus", "must be nats://HOST:PORT", url.rpartition("@")[2]
        )
    credentials: dict[str, str] = {}
    if parts.username and parts.password:
        credentials = {"user": unquote(parts.username), "pass": unquote(parts.password)}
    elif parts.username:
        credentials = {"auth_token": unquote(parts.username)}
    elif login.user:
        credentials = {"user": login.user, "pass": login.password}
    elif login.token:
        credentials = {"auth_token": login.token}
    return parts.hostname, parts.port or 4222, credentials
