"""Relays of a fleet in a container: plain ports on its loopback that lead to encrypted services.

TLS front and SSH forwards end in the fleet and pass on plain bytes. Bus and manager are in other
containers there and demand TLS: a relay encrypts what passes it, so that the parts of the fleet
know loopback addresses only, as on one machine.
"""

import asyncio
import contextlib
import itertools
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from svc_common.errors import UnavailableError
from svc_common.logs import get_logger
from svc_common.tasks import TaskOwner, wait_first
from svc_trial_runner.fleet.adapters.front.listener import GRPC_PROTOCOL, Streams

LOOPBACK: Final = "127.0.0.1"
_BUS_PORT: Final = 4222
"""Port of an address of the bus that has none."""
_CONNECT_S: Final = 5.0
"""Time limit of a connection to a service, with its handshake."""
_CHUNK_BYTES: Final = 64 * 1024
_LINE_LIMIT_BYTES: Final = 64 * 1024
_INFO: Final = b"INFO "
_HIDDEN: Final = ("tls_required", "tls_available", "tls_verify", "connect_urls", "ip", "client_ip")
"""Fields of the bus's greeting that hold for a direct connection only."""

TlsContext = Callable[[], ssl.SSLContext]


@dataclass(frozen=True, slots=True)
class Address:
    """Host and port of a service."""

    host: str
    """Name or address; one of IPv6 also in brackets."""
    port: int


class BusConnector:
    """Connector to the first bus server that answers; reads its greeting and encrypts, if set.

    Args:
        url: addresses of the servers, separated by commas; they are tried in turn.
        tls: makes the context of a connection; None: the bus speaks plain text.
        tls_first: True if the bus speaks TLS from the first byte on.
    """

    def __init__(self, url: str, tls: TlsContext | None, *, tls_first: bool = False) -> None:
        parts = [urlsplit(part.strip()) for part in url.split(",")]
        self._servers = [Address(one.hostname or "", one.port or _BUS_PORT) for one in parts]
        self._turns = itertools.cycle(range(len(self._servers)))
        self._tls = tls
        self._tls_first = tls_first

    async def connect(self) -> tuple[Streams, bytes]:
        """Return streams to the next server that answers in time, and the greeting for the client.

        Raises:
            UnavailableError: no server can be reached.
        """
        first = next(self._turns)
        reason = ""
        for server in self._servers[first:] + self._servers[:first]:
            try:
                async with asyncio.timeout(_CONNECT_S):
                    return await self._connect(server)
            except (OSError, EOFError, ValueError, TimeoutError) as error:
                reason = f"{server.host}:{server.port}: {str(error) or type(error).__name__}"
        raise UnavailableError(f"no server of the bus can be reached ({reason})")

    async def _connect(self, server: Address) -> tuple[Streams, bytes]:
        if self._tls is None or self._tls_first:
            reader, writer = await _opened(server, self._tls)
            try:
                return (reader, writer), plain_greeting(await reader.readline())
            except BaseException:
                writer.close()
                raise
        reader, writer = await asyncio.open_connection(
            server.host, server.port, limit=_LINE_LIMIT_BYTES
        )
        try:
            greeting = plain_greeting(await reader.readline())
            await writer.start_tls(self._tls(), server_hostname=server.host)
        except BaseException:
            writer.close()
            raise
        return (reader, writer), greeting


class ManagerConnector:
    """Connector to a gRPC server of the managers.

    Args:
        address: of the server.
        tls: makes the context of a connection; None: the server speaks plain text.
    """

    def __init__(self, address: Address, tls: TlsContext | None) -> None:
        self._address = address
        self._tls = tls

    async def connect(self) -> tuple[Streams, bytes]:
        """Return streams to the manager and an empty greeting; UnavailableError if out of reach.

        Raises:
            UnavailableError: it cannot be reached.
        """
        try:
            async with asyncio.timeout(_CONNECT_S):
                return await _opened(self._address, self._tls, GRPC_PROTOCOL), b""
        except (OSError, TimeoutError) as error:
            place = f"{self._address.host}:{self._address.port}"
            raise UnavailableError(
                f"the manager at {place} cannot be reached: {str(error) or type(error).__name__}"
            ) from error


Connector = BusConnector | ManagerConnector


class Relay:
    """Listener on loopback that passes each connection on to a service.

    Args:
        connector: connects to the service.
    """

    def __init__(self, connector: Connector) -> None:
        self._connector = connector
        self._server: asyncio.Server | None = None
        self._tasks = TaskOwner(_failed)

    async def start(self) -> Address:
        """Listen on a free port of loopback; return the address."""
        self._server = await asyncio.start_server(self._accept, LOOPBACK, 0, limit=_CHUNK_BYTES)
        return Address(LOOPBACK, self._server.sockets[0].getsockname()[1])

    async def aclose(self) -> None:
        """Stop listening and close all connections; may be called twice."""
        if self._server is not None:
            self._server.close()
        await self._tasks.aclose()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.start(self._serve(reader, writer), "relayed connection")

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            (inner_reader, inner_writer), greeting = await self._connector.connect()
        except UnavailableError as error:
            get_logger().warning("relay cannot reach a service", error=error.message)
            writer.close()
            return
        try:
            writer.write(greeting)
            await wait_first(_pump(reader, inner_writer), _pump(inner_reader, writer))
        finally:
            inner_writer.close()
            writer.close()


def plain_greeting(line: bytes) -> bytes:
    """Return the bus's INFO line without the fields that hold for a direct connection only.

    The client's connection ends here: it must neither encrypt again, nor look for other servers.

    Args:
        line: `INFO {…}` of the bus.

    Raises:
        ValueError: it is no such line.
    """
    if not line.startswith(_INFO):
        raise ValueError("the server is no bus")
    fields = json.loads(line.removeprefix(_INFO))
    kept = {name: value for name, value in fields.items() if name not in _HIDDEN}
    return _INFO + json.dumps(kept, separators=(",", ":")).encode() + b"\r\n"


async def _opened(address: Address, tls: TlsContext | None, protocol: str = "nats") -> Streams:
    context = None
    if tls is not None:
        context = tls()
        context.set_alpn_protocols([protocol])
    host = address.host.strip("[]")
    return await asyncio.open_connection(
        host,
        address.port,
        ssl=context,
        server_hostname=host if context else None,
        limit=_LINE_LIMIT_BYTES,
    )


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes, with back-pressure, until the reader ends or a connection fails."""
    with contextlib.suppress(OSError):
        while data := await reader.read(_CHUNK_BYTES):
            writer.write(data)
            await writer.drain()


def _failed(name: str, error: BaseException) -> None:
    get_logger().error("connection failed", task=name, exc_info=error)
