"""Listener of the TLS front: handshakes, and routes by the protocol that ALPN has selected."""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from nni_wire.local_peers import check_owner
from svc_common.access.front_addresses import front_source
from svc_common.logs import get_logger
from svc_common.tasks import TaskOwner, wait_first
from svc_trial_runner.fleet.adapters.front.connection_limits import (
    ConnectionCounts,
    ConnectionLimits,
)

GRPC_PROTOCOL: Final = "h2"
"""Protocol of ALPN by which clients of gRPC are known."""
HANDSHAKE_S: Final = 10.0
"""Time limit of a handshake."""
IDLE_S: Final = 900.0
"""A connection without a byte for so long is closed: agents of the bus send a ping every 2 min, and
gRPC connects again."""
_CHUNK_BYTES: Final = 64 * 1024
_SHUTDOWN_S: Final = 2.0
_ACCEPT_PAUSE_S: Final = 1.0
"""Pause after a failed accept: descriptors or memory are short."""
_CONNECT_S: Final = 5.0
"""Time limit of a connection to a service on loopback."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter, str], Awaitable[None]]
"""Serves one connection; arguments are its streams and the client's address."""


@dataclass(frozen=True, slots=True)
class Forward:
    """Route to a service on loopback, to which the TLS front's connections are relayed."""

    host: str
    port: int
    owner: int | None = None
    """Number of the user that has to own the listening socket; None: not checked."""

    async def serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> None:
        """Relay bytes to and from the service until one side ends or both are idle for `IDLE_S`."""
        try:
            inner_reader, inner_writer = await self._connect(address)
        except (OSError, TimeoutError) as error:
            get_logger().warning("front cannot reach a service", port=self.port, error=str(error))
            return
        try:
            async with asyncio.timeout(IDLE_S) as limit:
                await wait_first(
                    _pump(reader, inner_writer, limit), _pump(inner_reader, writer, limit)
                )
        except TimeoutError:
            return
        finally:
            inner_writer.close()

    async def _connect(self, address: str) -> Streams:
        if self.owner is not None:
            check_owner(self.port, self.owner, host=self.host)
        async with asyncio.timeout(_CONNECT_S):
            return await asyncio.open_connection(
                self.host, self.port, local_addr=(front_source(address), 0), limit=_CHUNK_BYTES
            )


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, limit: asyncio.Timeout
) -> None:
    """Copy bytes until the reader ends or a side fails; each chunk postpones the idle time-out."""
    loop = asyncio.get_running_loop()
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            limit.reschedule(loop.time() + IDLE_S)
            writer.write(data)
            await writer.drain()


class FrontListener:
    """TLS listener of one socket: serves each connection by its ALPN protocol, within limits.

    Args:
        listening: socket that listens; it is closed with the listener.
        context: TLS context, which may be replaced at any time.
        routes: what serves a connection, by its ALPN protocol.
        limits: of connections.
        handshake_s: time limit of a handshake.
    """

    def __init__(
        self,
        listening: socket.socket,
        context: ssl.SSLContext,
        routes: Mapping[str, Serve],
        limits: ConnectionLimits,
        handshake_s: float = HANDSHAKE_S,
    ) -> None:
        self.context = context
        self._listening = listening
        self._listening.setblocking(False)  # noqa: FBT003 - its only way
        self._routes = routes
        self._counts = ConnectionCounts(limits)
        self._handshake_s = handshake_s
        self._tasks = TaskOwner(_failed)
        self._tasks.start(self._accept(), "front")

    async def aclose(self) -> None:
        """Stop listening and close all connections; may be called twice."""
        await self._tasks.aclose()
        self._listening.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, place = await loop.sock_accept(self._listening)
            except OSError as error:
                get_logger().warning("front cannot accept", error=str(error))
                await asyncio.sleep(_ACCEPT_PAUSE_S)
                continue
            address = plain_address(place[0])
            if self._counts.begin(address):
                self._tasks.start(self._serve(accepted, address), "connection")
            else:
                accepted.close()

    async def _serve(self, accepted: socket.socket, address: str) -> None:
        try:
            try:
                reader, writer = await self._shake(accepted)
            except (OSError, TimeoutError):  # no TLS, another authority, too slow
                return
            finally:
                self._counts.shake(address)
            try:
                await self._route(reader, writer, address)
            finally:
                writer.close()
                with contextlib.suppress(OSError, TimeoutError):
                    await writer.wait_closed()
        finally:
            accepted.close()
            self._counts.end(address)

    async def _shake(self, accepted: socket.socket) -> Streams:
        accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        accepted.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(_CHUNK_BYTES, loop)
        protocol = asyncio.StreamReaderProtocol(reader)
        transport, _ = await loop.connect_accepted_socket(
            lambda: protocol,
            accepted,
            ssl=self.context,
            ssl_handshake_timeout=self._handshake_s,
            ssl_shutdown_timeout=_SHUTDOWN_S,
        )
        return reader, asyncio.StreamWriter(transport, protocol, reader, loop)

    async def _route(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str
    ) -> None:
        secured: ssl.SSLObject = writer.get_extra_info("ssl_object")
        serve = self._routes.get(secured.selected_alpn_protocol() or "")
        if serve is None:
            return  # a browser or a scanner
        with contextlib.suppress(OSError):
            await serve(reader, writer, address)


def plain_address(text: str) -> str:
    """Return an address of a peer, an IPv4 one without the prefix that dual-stack sockets add."""
    return text.removeprefix("::ffff:").partition("%")[0]


def _failed(name: str, error: BaseException) -> None:
    get_logger().error("connection failed", task=name, exc_info=error)
