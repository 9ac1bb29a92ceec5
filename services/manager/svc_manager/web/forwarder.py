"""Reverse proxy to the manager that owns an experiment."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

import h11
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from svc_common.access.delegation import ON_BEHALF_KEY, Delegation
from svc_common.access.roles import BY_CERTIFICATE, BY_PAGE, Caller
from svc_common.errors import UnavailableError
from svc_common.tasks import StoppedError, result_unless, wait_first
from svc_manager.actors.leasing import OwnedElsewhereError
from svc_manager.web.security import CERTIFICATE_NAME
from svc_manager.web.streams import take_until

FORWARDED_HEADER: Final = "nni-forwarded"
"""Header of a forwarded request; a request with this header is not forwarded again."""
T = TypeVar("T")

_CONNECT_S: Final = 2.0
_HEAD_S: Final = 60.0
"""Time limit for the head of the owner's response."""
_CHUNK_BYTES: Final = 64 * 1024
_HOP_BY_HOP: Final = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"}
    | {"upgrade", "content-length"}
)
"""Headers that belong to one connection; the next connection gets its own."""
_NOT_FORWARDED: Final = _HOP_BY_HOP | {ON_BEHALF_KEY}
"""A client must not set `ON_BEHALF_KEY`: only a manager may act for a caller."""


UntilMoved: TypeAlias = Callable[[OwnedElsewhereError], Awaitable[None]]
"""Waits until the named manager no longer owns the experiment."""


async def _never(_moved: OwnedElsewhereError) -> None:
    await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class HttpForwarder:
    """HTTP client that repeats a REST request at the manager that owns the experiment."""

    boot_id: str
    """Boot id of this manager."""
    tls: ssl.SSLContext | None = None
    """TLS to the other managers; None: plain HTTP."""
    until_moved: UntilMoved = _never
    """Ends a request whose target loses the experiment: a frozen manager would never respond."""
    tls_name: str = ""
    """Name in the certificates of the other managers; empty: the host of their address."""
    delegation: Delegation | None = None
    """Credentials on behalf of callers with a client certificate; None: no such callers."""

    def headers(self, request: Request) -> list[tuple[bytes, bytes]]:
        """Return (name, value) headers to add to a forwarded request: own id, credentials."""
        added = [(FORWARDED_HEADER, self.boot_id)]
        caller: Caller | None = getattr(request.state, "caller", None)
        if self.delegation is not None and caller is not None and caller.by == BY_CERTIFICATE:
            name = request.scope.get("state", {}).get(CERTIFICATE_NAME, "")
            added += self.delegation.metadata_of_certificate(name)
        elif self.delegation is not None and caller is not None and caller.by == BY_PAGE:
            added += self.delegation.metadata_of(caller)  # the cookie is valid at this one only
        return [(name.encode(), value.encode()) for name, value in added]

    async def forward(
        self,
        request: Request,
        body: bytes,
        moved: OwnedElsewhereError,
        until_stopped: Callable[[], Awaitable[None]],
    ) -> Response:
        """Send a REST request to the experiment's owner; return a response that streams its body.

        Args:
            request: the request as received.
            body: its complete body.
            moved: names the owner of the experiment.
            until_stopped: waits until the listener closes, which ends the response.

        Raises:
            OwnedElsewhereError: the owner has no address, or the request was forwarded before.
            UnavailableError: the owner does not respond.
        """
        address = moved.manager.http_address
        if FORWARDED_HEADER in request.headers or not address:
            raise moved

        async def ended() -> None:
            await wait_first(until_stopped(), self.until_moved(moved))

        try:
            upstream = await result_unless(
                ended(), _UpstreamResponse.of(self, request, body, address)
            )
        except (OSError, TimeoutError, StoppedError, h11.ProtocolError) as error:
            raise UnavailableError(
                f"the manager of experiment {moved.experiment_id!r} at {address} does not respond; "
                "another one takes the experiment over within seconds: try again",
                moved.facts,
            ) from error
        response = StreamingResponse(_body_until(ended, upstream), status_code=upstream.status)
        response.raw_headers = upstream.headers
        return response


class _UpstreamResponse:
    """Response of the owner to a forwarded request: its head, and its body still to be read."""

    def __init__(
        self,
        connection: h11.Connection,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        head: h11.Response,
    ) -> None:
        self._connection = connection
        self._reader = reader
        self._writer = writer
        self.status = head.status_code
        self.headers = [
            (name, value)
            for name, value in head.headers
            # The length belongs to the message, not to the connection; browsers show it.
            if name == b"content-length" or name.decode("latin-1") not in _HOP_BY_HOP
        ]

    @classmethod
    async def of(
        cls, by: HttpForwarder, request: Request, body: bytes, address: str
    ) -> _UpstreamResponse:
        """Connect to the owner, send the request, read the response's head; return the response."""
        host, _, port = address.rpartition(":")
        async with asyncio.timeout(_CONNECT_S):
            reader, writer = await asyncio.open_connection(
                host.strip("[]"),
                int(port),
                ssl=by.tls,
                server_hostname=by.tls_name or None if by.tls else None,
            )
        try:
            connection = h11.Connection(h11.CLIENT)
            for event in _request_events(request, body, by.headers(request)):
                data = connection.send(event)
                writer.write(data or b"")
            await writer.drain()
            async with asyncio.timeout(_HEAD_S):
                head = await _read_head(connection, reader)
            return cls(connection, reader, writer, head)
        except BaseException:
            writer.close()
            raise

    async def chunks(self) -> AsyncGenerator[bytes, None]:
        """Yield the owner's response body in chunks; close the connection at the end."""
        try:
            while True:
                event = await _next_event(self._connection, self._reader)
                if isinstance(event, h11.Data):
                    yield bytes(event.data)
                elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                    return
        finally:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()


async def _body_until(
    ended: Callable[[], Awaitable[None]], upstream: _UpstreamResponse
) -> AsyncGenerator[bytes, None]:
    async with aclosing(take_until(ended, upstream.chunks())) as chunks:
        async for chunk in chunks:
            if chunk is not None:
                yield chunk


def _request_events(
    request: Request, body: bytes, added: list[tuple[bytes, bytes]]
) -> tuple[h11.Request, h11.Data, h11.EndOfMessage]:
    """Build the h11 events to forward a request: same method, path, body; own headers replaced."""
    target = request.scope.get("raw_path") or request.url.path.encode()
    query = request.scope.get("query_string", b"")
    replaced = _NOT_FORWARDED | {name.decode() for name, _ in added}
    headers = [
        (name, value)
        for name, value in request.headers.raw
        if name.decode("latin-1").lower() not in replaced
    ]
    headers += [(b"content-length", str(len(body)).encode()), (b"connection", b"close"), *added]
    head = h11.Request(
        method=request.method, target=target + (b"?" + query if query else b""), headers=headers
    )
    return head, h11.Data(data=body), h11.EndOfMessage()


async def _read_head(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Response:
    """Return the status and headers of an HTTP response; raise if the connection closes first.

    Raises:
        ConnectionResetError: the connection was closed before.
    """
    while True:
        event = await _next_event(connection, reader)
        if isinstance(event, h11.Response):
            return event
        if isinstance(event, h11.ConnectionClosed):
            raise ConnectionResetError("closed without a response")


async def _next_event(connection: h11.Connection, reader: asyncio.StreamReader) -> object:
    """Return the next parsed HTTP event, reading from the connection while data is missing."""
    while True:
        event = connection.next_event()
        if event is not h11.NEED_DATA:
            return event
        connection.receive_data(await reader.read(_CHUNK_BYTES))
