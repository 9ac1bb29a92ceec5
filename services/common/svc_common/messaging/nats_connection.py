"""Connection to NATS that reconnects for ever, with a nats-py client for each connection.

nats-py's own reconnection sends what was left unsent before an outage, retries wrong credentials
for ever and does not reopen a client that it closed on an error of the server.
"""

import asyncio
import itertools
import re
import secrets
import ssl
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, TypeVar

from nni_wire.local_peers import ForeignOwnerError, check_owner
from svc_common.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnauthenticatedError,
    UnavailableError,
)
from svc_common.logs import get_logger
from svc_common.messaging.nats_requests import (
    Answer,
    DisconnectedError,
    Headers,
    NoRespondersError,
    RequestTable,
)
from svc_common.messaging.nats_settings import NatsSettings, Server
from svc_common.socket_loop import route_to_socket
from svc_common.subjects import check_id
from svc_common.tasks import StoppedError, result_unless, wait_first


@contextmanager
def _without_web_sockets() -> Iterator[None]:
    """Make imports of aiohttp fail in the block, so that nats-py loads without it, and faster.

    Only its connections by web socket need it; `NatsSettings` allows none.
    """
    modules: dict[str, Any] = sys.modules
    if "aiohttp" in modules:
        yield
        return
    modules["aiohttp"] = None  # an import of it raises ImportError
    try:
        yield
    finally:
        del modules["aiohttp"]


with _without_web_sockets():
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription
    from nats.errors import Error, ProtocolError

FIRST_RETRY_S: Final = 0.01
"""The bus may be starting beside this process."""
LAST_RETRY_S: Final = 2.0
TIMEOUT_S: Final = 5
"""Limit of a handshake, and of a close while the server does not read."""
UNSENT_LIMIT_BYTES: Final = 4 * 1024 * 1024
_HEADERS_LIMIT_BYTES: Final = 1024
"""More than the headers of any message."""
_FORBIDDEN: Final = re.compile(r'permissions violation for (publish|subscription) to "([^"]+)"')
"""Error of the server, which nats-py puts in lower case."""

Receive = Callable[[str, str, Headers, bytes], object]
"""Callback with subject, reply, headers and payload of a message."""
T = TypeVar("T")


class _Delivery(asyncio.Future[Msg]):
    """Future that nats-py completes with each message of a subscription, passed to a callback.

    A callback of nats-py costs a queue and a task switch, and messages of two subscriptions would
    overtake each other. nats-py drops the messages of a cancelled future.
    """

    def __init__(self, receive: Receive) -> None:
        super().__init__()
        self.receive = receive

    def set_result(self, message: Msg) -> None:
        try:
            self.receive(message.subject, message.reply, message.headers or {}, message.data)
        except Exception as error:
            # nats-py would stop reading without a word; a broken protocol makes it disconnect.
            get_logger().error("bus message not handled", exc_info=error)
            raise ProtocolError from error


class Connection:
    """NATS connection that reconnects by itself, with requests and subscriptions.

    While the server is away, `publish` drops and requests fail at once with `DisconnectedError`:
    a caller that must not lose a message repeats it after `wait_connected`.

    Args:
        settings: addresses, credentials and limits.
        requests: table of the pending requests; None for one of its own.
    """

    def __init__(self, settings: NatsSettings, requests: RequestTable | None = None) -> None:
        self._settings = settings
        self._servers = settings.servers()
        # A user's permissions keep answers from other users: they go below the user's own name.
        own = f"{check_id('user of the bus', settings.user)}." if settings.user else ""
        self._inbox = f"_INBOX.{own}{secrets.token_hex(8)}"
        self._numbers = itertools.count(1)
        self._requests = requests or RequestTable()
        self._subjects: dict[int, tuple[str, Receive]] = {}
        self._subscriptions: dict[int, tuple[Subscription, _Delivery]] = {}
        self._forbidden: set[str] = set()
        self._callbacks: list[Callable[[], None]] = []
        self._client: Client | None = None
        self._up, self._down, self._closing = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._down.set()
        self._keeper: asyncio.Task[None] | None = None
        self._refusal = asyncio.Event()
        """Set at each refusal of the credentials after the first connection."""
        self._refused_since_s: float | None = None
        """Of the first one of the present refusals; None: the server took the last try, or was
        away."""
        self.max_payload = 1024 * 1024

    async def open(self) -> None:
        """Start connecting, and return once connected; raise on wrong credentials or TLS.

        Raises:
            UnauthenticatedError: the server refuses the credentials.
            FailedPreconditionError: one side wants encryption and the other does not have it, or
                the server's certificate cannot be trusted.
            InvalidArgumentError: a file of the encryption cannot be used.
        """
        self.subscribe(f"{self._inbox}.*", self._answered)
        self._keeper = asyncio.create_task(self._keep(), name="nats connection")
        try:
            await wait_first(self._up.wait(), asyncio.shield(self._keeper))
        except BaseException:
            await self.aclose()
            raise

    async def aclose(self) -> None:
        """Send buffered data, close the connection and notify callbacks; may be called twice."""
        self._closing.set()
        self._lose(self._client)
        if self._keeper is not None:
            await asyncio.gather(self._keeper, return_exceptions=True)
        self._up.set()  # `wait_connected` finds the connection closed
        for callback in tuple(self._callbacks):
            callback()

    @property
    def closed(self) -> bool:
        """Whether `aclose` was called."""
        return self._closing.is_set()

    @property
    def connected(self) -> bool:
        """Whether the server can be reached now."""
        return self._up.is_set() and not self.closed

    async def wait_connected(self) -> None:
        """Wait until the NATS server can be reached; raise if the connection was closed.

        Raises:
            UnavailableError: the connection was closed.
        """
        if not self.closed:
            await self._up.wait()
        if self.closed:
            raise UnavailableError("the connection to the bus is closed")

    async def wait_disconnected(self) -> None:
        """Wait until the server cannot be reached."""
        await self._down.wait()

    async def wait_refused(self, limit_s: float) -> None:
        """Wait until the server has refused the credentials for `limit_s`; one waiter only.

        Args:
            limit_s: that time, in seconds. A server that is away in between starts it anew.
        """
        while True:
            await self._refusal.wait()
            self._refusal.clear()
            since_s = self._refused_since_s
            if since_s is not None and asyncio.get_running_loop().time() - since_s >= limit_s:
                return

    def on_change(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Register a callback for reconnections and the close; return a function to remove it."""
        self._callbacks.append(callback)
        return lambda: self._callbacks.remove(callback)

    def publish(
        self, subject: str, payload: bytes, *, reply: str = "", headers: Headers | None = None
    ) -> bool:
        """Send a message without waiting; return False if the server is away and it was dropped.

        Raises:
            ResourceExhaustedError: the message is larger than the server allows.
        """
        size, limit = len(payload) + (_HEADERS_LIMIT_BYTES if headers else 0), self.max_payload
        if size > limit:
            text = f"a message of {len(payload)} bytes is larger than the bus allows ({limit})"
            raise ResourceExhaustedError(text)
        if (client := self._client) is not None:
            try:
                _run(client.publish(subject, payload, reply, headers))
            except Error:  # closed or reconnecting, of which nats-py has not informed us yet
                self._lose(client)
        return self._client is not None

    @property
    def congested(self) -> bool:
        """Whether more than `UNSENT_LIMIT_BYTES` are unsent, so that senders should wait."""
        return self._client is not None and self._client.pending_data_size > UNSENT_LIMIT_BYTES

    async def writable(self) -> None:
        """Flush until at most `UNSENT_LIMIT_BYTES` are unsent, or the connection is lost."""
        while self.congested:
            with suppress(UnavailableError):
                await self.flush()

    def subscribe(self, subject: str, receive: Receive) -> int:
        """Subscribe a callback to a subject, also after reconnections; return an id to end it."""
        sid = next(self._numbers)
        self._subjects[sid] = (subject, receive)
        if self._client is not None:
            self._subscribe(self._client, sid)
        return sid

    def check_allowed(self, subject: str) -> None:
        """Raise PermissionDeniedError if the server has refused a subscription to ``subject``."""
        if subject.lower() in self._forbidden:
            raise PermissionDeniedError(f"the bus forbids this user to listen to {subject}")

    def unsubscribe(self, sid: int) -> None:
        """End a subscription by its id; do nothing if it has ended."""
        self._subjects.pop(sid, None)
        if sid in self._subscriptions:
            subscription, delivery = self._subscriptions.pop(sid)
            delivery.cancel()
            with suppress(Error):
                _run(subscription.unsubscribe())

    async def drain(self, sid: int) -> None:
        """End a subscription after all messages that the server has sent to it have arrived.

        Raises:
            UnavailableError: the server is away; what it had sent is lost.
        """
        if sid in self._subscriptions and self.connected:
            # nats-py 2.16 sends the PING that ends its own `drain` before UNSUB. Here the server
            # ends the subscription after one more message than has arrived, which `last` is unless
            # others are under way, and nats-py keeps it for those.
            subscription, delivery = self._subscriptions[sid]
            receive, last = delivery.receive, subscription.subject.replace("*", "last")
            delivery.receive = lambda subject, *rest: subject == last or receive(subject, *rest)
            _run(subscription.unsubscribe(subscription.delivered + 1))
            self.publish(last, b"")
            _run(subscription.unsubscribe(sys.maxsize))
        try:
            await self.flush()
        finally:
            self.unsubscribe(sid)

    def new_inbox(self) -> str:
        """Return a subject for answers that no other connection subscribes to."""
        return f"{self._inbox}-{next(self._numbers)}"

    def request(
        self, subject: str, payload: bytes, *, timeout_s: float, headers: Headers | None = None
    ) -> Answer:
        """Send a request; return a future of the first answer, which fails at a time-out or loss.

        The future raises `DisconnectedError`, `NoRespondersError`, `PermissionDeniedError` or
        `RequestTimeoutError`.
        """
        token, answer = self._requests.add(timeout_s, subject)
        if not self.publish(subject, payload, reply=f"{self._inbox}.{token}", headers=headers):
            self._requests.fail(token, DisconnectedError("the bus is away"))
        return answer

    async def flush(self, timeout_s: float = TIMEOUT_S) -> None:
        """Wait, within `timeout_s`, until the server has handled all that was sent before.

        Raises:
            UnavailableError: the server is away or does not answer.
        """
        with suppress(NoRespondersError):  # the server's answer: that inbox has no subscriber
            await self.request(self.new_inbox(), b"", timeout_s=timeout_s)

    async def _keep(self) -> None:
        """Connect to the servers in turn, and again after each loss with back-off, until closed."""
        wait_s, opened = 0.0, False
        for server in itertools.cycle(self._servers):
            client = Client()
            try:
                await result_unless(self._closing.wait(), self._connect(client, server, wait_s))
                wait_s, opened, self._refused_since_s = 0.0, True, None
                if not self.closed:  # in the same turn of the loop
                    await self._serve(client)
            except StoppedError:
                return
            except (
                UnauthenticatedError,
                FailedPreconditionError,
                InvalidArgumentError,  # a certificate that is being replaced
            ) as error:
                if not opened:
                    raise
                get_logger().error("bus cannot be used", error=error.message)
                self._count_refusal(error)
            except (UnavailableError, TimeoutError) as error:
                self._refused_since_s = None
                if isinstance(error.__cause__, ssl.SSLError):
                    get_logger().warning("bus connection not encrypted", error=str(error))
            finally:
                self._lose(client)
                # In a task of its own: closed while it reconnects, nats-py cancels a future for
                # which `close` itself waits, and this task would end with that cancellation.
                with suppress(TimeoutError):
                    async with asyncio.timeout(TIMEOUT_S):
                        await asyncio.gather(client.close(), return_exceptions=True)
            wait_s = min(max(wait_s * 2, FIRST_RETRY_S), LAST_RETRY_S)

    def _count_refusal(self, error: Exception) -> None:
        if not isinstance(error, UnauthenticatedError):
            self._refused_since_s = None
            return
        if self._refused_since_s is None:
            self._refused_since_s = asyncio.get_running_loop().time()
        self._refusal.set()

    def _check_owner(self, server: Server) -> None:
        """Raise if a user other than root or the expected one has sockets at the bus's port.

        Raises:
            UnavailableError: another user has the port; the bus may get another one.
        """
        if self._settings.owner is None:
            return
        try:
            check_owner(server.port, self._settings.owner, host=server.host)
        except ForeignOwnerError as error:
            get_logger().error("bus not trusted", port=error.port, owner=error.uid)
            raise UnavailableError(str(error)) from error

    async def _connect(self, client: Client, server: Server, wait_s: float) -> None:
        """Connect a client after a pause; send secrets only to the right owner, by TLS if set."""
        await asyncio.sleep(wait_s)
        settings, tls = self._settings, self._settings.tls_context()
        host = f"[{server.host}]" if ":" in server.host else server.host

        def reveal(secret: str) -> str:
            # The context is of this connection only: it has made one handshake, or none.
            if tls is not None and not tls.session_stats()["connect_good"]:
                raise FailedPreconditionError(
                    f"the bus at {server.host} does not offer encryption, so no secret is sent to "
                    "it; add a tls block to its configuration"
                )
            self._check_owner(server)  # here, since nats-py has connected by now
            return secret

        async def disconnected() -> None:
            self._lose(client)
            if client.is_reconnecting:  # by itself
                raise asyncio.CancelledError

        async def lame_duck() -> None:
            get_logger().warning("bus is shutting down", host=server.host)
            if len(self._servers) > 1:
                self._lose(client)

        self._check_owner(server)
        try:
            if settings.socket is not None:
                route_to_socket(server.host, settings.socket())
            async with asyncio.timeout(TIMEOUT_S):
                await client.connect(
                    f"nats://{host}:{server.port}",
                    name=settings.name,
                    # A context without authorities fails a handshake that is not wanted.
                    tls=tls or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT),
                    tls_handshake_first=settings.tls_first and tls is not None,
                    tls_hostname=settings.tls_name or None,
                    user=partial(reveal, server.user) if server.user else None,
                    password=partial(reveal, server.password),
                    token=partial(reveal, server.token) if server.token else None,
                    connect_timeout=TIMEOUT_S,
                    pending_size=0,  # see `_run`
                    flusher_queue_size=0,
                    skip_subject_validation=True,  # `svc_common.subjects` makes all of them
                    error_cb=partial(self._on_error, client),
                    disconnected_cb=disconnected,
                    lame_duck_mode_cb=lame_duck,
                )
            reveal("")
        except (Error, OSError, ValueError) as error:
            raise _translated(error, server, encrypted=tls is not None) from error

    async def _serve(self, client: Client) -> None:
        """Subscribe a new client to all subjects, announce it, send heartbeats until it is lost.

        Raises:
            UnavailableError: the server does not answer.
        """
        self._client = client
        self._down.clear()
        self.max_payload = client.max_payload
        for sid in self._subjects:
            self._subscribe(client, sid)
        await self.flush()  # now the server knows the subscriptions
        if self._down.is_set():
            return  # lost since the answer arrived
        self._up.set()
        for callback in tuple(self._callbacks):
            callback()
        while not self._down.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.heartbeat_s):
                    await self._down.wait()
                    return
            await self.flush(self._settings.heartbeat_s)

    def _lose(self, client: Client | None) -> None:
        """Drop a lost client: fail pending requests, clear subscriptions, mark as disconnected."""
        if client is None or client is not self._client:
            return
        if not self.closed:
            get_logger().warning("bus connection lost", error=str(client.last_error or ""))
        self._client = None
        self._up.clear()
        self._down.set()
        for _, delivery in self._subscriptions.values():
            delivery.cancel()
        self._subscriptions.clear()
        self._requests.fail_all()

    def _subscribe(self, client: Client, sid: int) -> None:
        subject, receive = self._subjects[sid]
        delivery = _Delivery(receive)
        with suppress(Error):  # closed, of which nats-py has not informed us yet
            self._subscriptions[sid] = _run(client.subscribe(subject, future=delivery)), delivery

    async def _on_error(self, client: Client, error: Exception) -> None:
        if client is not self._client:
            raise error  # while it connects: nats-py would go on trying for ever
        violation = _FORBIDDEN.search(str(error))
        if violation is None:
            return
        get_logger().warning("bus refused an operation", error=str(error))
        if violation[1] == "publish":
            self._requests.forbid(violation[2])
        else:
            self._forbidden.add(violation[2])

    def _answered(self, subject: str, _reply: str, headers: Headers, payload: bytes) -> None:
        self._requests.complete(subject.rpartition(".")[2], headers, payload)


def _run(coroutine: Coroutine[object, None, T]) -> T:
    """Run a nats-py coroutine that never waits to its end; return its result."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    raise RuntimeError("nats-py waits where it must not")


def _translated(error: Exception, server: Server, *, encrypted: bool) -> Exception:
    """Return our error (credentials, encryption, unavailable) for one that nats-py raised."""
    place = f"the bus at {server.host}:{server.port}"
    match error:
        case ssl.SSLError() if not encrypted:
            return FailedPreconditionError(
                f"{place} demands encryption; set NNI_TLS_CA_FILE to its authority"
            )
        case ssl.SSLCertVerificationError():
            reason = f"cannot be trusted ({error.verify_message}); check NNI_TLS_CA_FILE"
            return FailedPreconditionError(f"the certificate of {place} {reason}")
        case Error() if "authentication timeout" in str(error).lower():
            return UnavailableError(f"{place} has not checked the credentials in time")
        case Error() if "auth" in str(error).lower():
            return UnauthenticatedError(f"the bus refuses the credentials: {error}")
        case _:
            return UnavailableError(f"{place} cannot be used: {error}")
