"""Requests about experiments of another manager, passed on to its web server as they came."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias, TypeVar

import h11
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from svc_common.access.delegation import ON_BEHALF_KEY, Delegation
from svc_common.access.roles import BY_CERTIFICATE, Caller
from svc_common.errors import UnavailableError
from svc_manager.actors.leasing import OwnedElsewhereError
from svc_manager.web.security import CERTIFICATE_NAME
from svc_manager.web.streams import until

FORWARDED_HEADER: Final = "nni-forwarded"
"""Says that a request was passed on once; it is not passed on again."""
T = TypeVar("T")

_CONNECT_S: Final = 2.0
_HEAD_S: Final = 60.0
"""How long the owner may take until it begins to answer."""
_PIECE_BYTES: Final = 64 * 1024
_OF_THE_CONNECTION: Final = frozenset(
    {"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding"}
    | {"upgrade", "content-length"}
)
"""Headers of one connection; those of the next one are made anew."""
_NOT_PASSED_ON: Final = _OF_THE_CONNECTION | {ON_BEHALF_KEY}
"""Nobody but a manager says for whom it asks."""


UntilMoved: TypeAlias = Callable[[OwnedElsewhereError], Awaitable[None]]
"""Waits until a manager no longer has an experiment."""


async def _for_ever(_moved: OwnedElsewhereError) -> None:
    await asyncio.Event().wait()


@dataclass(frozen=True, slots=True)
class Forwarding:
    """How this manager calls the web servers of others."""

    boot_id: str
    """Of this manager."""
    tls: ssl.SSLContext | None = None
    """None: they speak plain HTTP."""
    until_moved: UntilMoved = _for_ever
    """A request to a manager that has lost the experiment meanwhile is given up: that one may be
    frozen and never answer."""
    tls_name: str = ""
    """Name in their certificates; empty: the host by which they are called."""
    delegation: Delegation | None = None
    """Stands for callers who show a certificate instead of a token; None: there are none."""

    def headers(self, request: Request) -> list[tuple[bytes, bytes]]:
        """Return what is said of a request to the manager that answers it."""
        said = [(FORWARDED_HEADER, self.boot_id)]
        caller: Caller | None = getattr(request.state, "caller", None)
        if self.delegation is not None and caller is not None and caller.by == BY_CERTIFICATE:
            name = request.scope.get("state", {}).get(CERTIFICATE_NAME, "")
            said += self.delegation.of_certificate(name)
        return [(name.encode(), value.encode()) for name, value in said]

    async def pass_on(
        self,
        request: Request,
        body: bytes,
        moved: OwnedElsewhereError,
        until_stopped: Callable[[], Awaitable[None]],
    ) -> Response:
        """Ask the owner of an experiment; give its answer as it comes.

        Args:
            request: as it came.
            body: all of it.
            moved: who has the experiment.
            until_stopped: waits for the end of the listener, and thereby of the answer.

        Raises:
            OwnedElsewhereError: the owner cannot be asked, or the request was passed on before.
            UnavailableError: the owner does not answer.
        """
        address = moved.manager.http_address
        if FORWARDED_HEADER in request.headers or not address:
            raise moved
        until = partial(_either, until_stopped, partial(self.until_moved, moved))
        try:
            answer = await _unless(until, _Answer.of(self, request, body, address))
        except (OSError, TimeoutError, h11.ProtocolError) as error:
            raise UnavailableError(
                f"the manager of experiment {moved.experiment_id!r} at {address} does not answer; "
                "another one takes the experiment over within seconds: try again",
                moved.facts,
            ) from error
        response = StreamingResponse(_pieces(answer, until), status_code=answer.status)
        response.raw_headers = answer.headers
        return response


class _Answer:
    """One answer, whose head has come."""

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
            # A length belongs to the message, and browsers show it.
            if name == b"content-length" or name.decode("latin-1") not in _OF_THE_CONNECTION
        ]

    @classmethod
    async def of(cls, by: Forwarding, request: Request, body: bytes, address: str) -> _Answer:
        """Send a request; return when its answer begins."""
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
            for event in _events(request, body, by.headers(request)):
                data = connection.send(event)
                writer.write(data or b"")
            await writer.drain()
            async with asyncio.timeout(_HEAD_S):
                head = await _head(connection, reader)
            return cls(connection, reader, writer, head)
        except BaseException:
            writer.close()
            raise

    async def pieces(self) -> AsyncGenerator[bytes, None]:
        """Give the body, piece by piece; close it when nobody reads on."""
        try:
            while True:
                event = await _next(self._connection, self._reader)
                if isinstance(event, h11.Data):
                    yield bytes(event.data)
                elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                    return
        finally:
            self._writer.close()
            with suppress(OSError):
                await self._writer.wait_closed()


async def _either(
    first: Callable[[], Awaitable[None]], second: Callable[[], Awaitable[None]]
) -> None:
    """Return when one of two returns."""
    waits = [asyncio.ensure_future(_returned(one)) for one in (first, second)]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()


async def _returned(wait: Callable[[], Awaitable[None]]) -> None:
    await wait()


async def _unless(until: Callable[[], Awaitable[None]], answer: Coroutine[Any, Any, T]) -> T:
    """Wait for an answer, but no longer than ``until``.

    Raises:
        TimeoutError: there is none by then.
    """
    answering, ending = asyncio.ensure_future(answer), asyncio.ensure_future(_returned(until))
    try:
        await asyncio.wait({answering, ending}, return_when=asyncio.FIRST_COMPLETED)
        if not answering.done():
            raise TimeoutError
        return answering.result()
    finally:
        answering.cancel()
        ending.cancel()


async def _pieces(
    answer: _Answer, until_stopped: Callable[[], Awaitable[None]]
) -> AsyncGenerator[bytes, None]:
    async with aclosing(until(until_stopped, answer.pieces())) as pieces:
        async for piece in pieces:
            if piece is not None:
                yield piece


def _events(
    request: Request, body: bytes, said: list[tuple[bytes, bytes]]
) -> tuple[h11.Request, h11.Data, h11.EndOfMessage]:
    target = request.scope.get("raw_path") or request.url.path.encode()
    query = request.scope.get("query_string", b"")
    replaced = _NOT_PASSED_ON | {name.decode() for name, _ in said}
    headers = [
        (name, value)
        for name, value in request.headers.raw
        if name.decode("latin-1").lower() not in replaced
    ]
    headers += [(b"content-length", str(len(body)).encode()), (b"connection", b"close"), *said]
    head = h11.Request(
        method=request.method, target=target + (b"?" + query if query else b""), headers=headers
    )
    return head, h11.Data(data=body), h11.EndOfMessage()


async def _head(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Response:
    """Read until an answer begins.

    Raises:
        ConnectionResetError: there is none.
    """
    while True:
        event = await _next(connection, reader)
        if isinstance(event, h11.Response):
            return event
        if isinstance(event, h11.ConnectionClosed):
            raise ConnectionResetError("closed without an answer")


async def _next(connection: h11.Connection, reader: asyncio.StreamReader) -> object:
    """Read the next event of an answer."""
    while True:
        event = connection.next_event()
        if event is not h11.NEED_DATA:
            return event
        connection.receive_data(await reader.read(_PIECE_BYTES))
