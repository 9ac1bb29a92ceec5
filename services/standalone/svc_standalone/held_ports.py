"""Loopback ports of bus and services, kept bound by the supervisor until it ends.

The supervisor binds every port itself, so that two installations never choose the same one, and
keeps the sockets while children end and start again, so that no other user gets a port meanwhile:

- gRPC servers bind their ports beside the supervisor's sockets. The kernel allows that
  (`SO_REUSEPORT`) to processes of the same user only.
- The manager gets the listening socket of HTTP itself: while it restarts, connections wait.
- The sockets of experiments' pages are bound by the manager and kept in the same way; see
  `svc_common.kept_listeners`.
- A service that is started on demand has a listening socket here until then; the first connection
  to it starts the service, and the client connects again.
- nats-server can neither adopt a socket nor set that option. Its port is exclusively the
  supervisor's while no nats-server runs, and shareable (`SO_REUSEADDR`) while one starts; as soon
  as it listens, no other process can bind the port. Clients check the owner of the port.
"""

import asyncio
import errno
import secrets
import socket
from typing import Final, Self

from svc_common.errors import FailedPreconditionError
from svc_standalone.commands import LOOPBACK, Ports

FIRST_PORT: Final = 20_000
LAST_PORT: Final = 32_767
"""Last port below the range that Linux uses for outgoing connections (`ip_local_port_range`).
Within that range, a client that tries to reach a stopped bus could connect to itself (TCP allows
it) and so occupy the port that the bus needs when it restarts."""
_TRIES: Final = 100
_BACKLOG: Final = 128


class HeldPorts:
    """Bound sockets that reserve the ports of bus and services until `close`."""

    def __init__(
        self,
        nats: socket.socket,
        dispatcher: socket.socket,
        compressor: socket.socket,
        nas: socket.socket,
        manager_grpc: socket.socket,
        manager_http: socket.socket,
    ) -> None:
        self._nats = nats
        self._others = [dispatcher, compressor, nas, manager_grpc]
        self.compressor = DemandedPort(compressor)
        """Port whose first connection starts the compressor."""
        self.nas = DemandedPort(nas)
        """Port whose first connection starts the NAS service."""
        self.http = manager_http
        """Listening socket of page and REST."""

    @classmethod
    def draw(cls, http_port: int = 0) -> Self:
        """Bind random free ports for bus and services, a given or free one for HTTP; return them.

        Args:
            http_port: port of page and REST; 0: a free one.

        Raises:
            FailedPreconditionError: that port is taken, or no port is free.
        """
        http = _bind_named(http_port) if http_port else _bind_free()
        http.listen(_BACKLOG)
        nats, dispatcher, compressor, nas, manager_grpc = (_bind_free() for _ in range(5))
        for shared in (dispatcher, compressor, nas, manager_grpc):
            shared.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        return cls(nats, dispatcher, compressor, nas, manager_grpc, http)

    @property
    def numbers(self) -> Ports:
        """Port numbers of bus and services."""
        return Ports(*(_number(one) for one in (self._nats, *self._others, self.http)))

    def lend_nats(self) -> None:
        """Make the bus's port, still bound here, shareable, so that a nats-server can bind it."""
        self._nats.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    def take_nats_back(self) -> bool:
        """Make the bus's port exclusive again; return False if another program listens on it.

        To be called when no nats-server runs.
        """
        self._nats.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        with socket.socket() as client:
            client.settimeout(1.0)
            return client.connect_ex((LOOPBACK, _number(self._nats))) == errno.ECONNREFUSED

    def redraw_nats(self) -> None:
        """Free the bus's port and bind another random free one in its place.

        Raises:
            FailedPreconditionError: no port is free.
        """
        self._nats.close()
        self._nats = _bind_free()

    def close(self) -> None:
        """Close the sockets of all ports; may be called twice."""
        self.compressor.close()
        self.nas.close()
        for one in (self._nats, *self._others, self.http):
            one.close()


class DemandedPort:
    """Placeholder listener that detects the first client of a service to be started on demand.

    Args:
        held: bound socket of the port, which other sockets of this user may share.
    """

    def __init__(self, held: socket.socket) -> None:
        self._held = held
        self._listening: socket.socket | None = None

    async def wait_for_client(self) -> None:
        """Listen until a client connects, then close, so that a service can listen at the port.

        The client's connection is reset; gRPC connects again.
        """
        listening = self._listening = _shared_with(self._held)
        listening.listen(_BACKLOG)
        loop = asyncio.get_running_loop()
        came = asyncio.Event()
        loop.add_reader(listening, came.set)
        try:
            await came.wait()
        finally:
            loop.remove_reader(listening)
            self.close()

    def close(self) -> None:
        """Stop listening; may be called twice."""
        if self._listening is not None:
            self._listening.close()
            self._listening = None


def _number(bound: socket.socket) -> int:
    return int(bound.getsockname()[1])


def _socket() -> socket.socket:
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)


def _shared_with(held: socket.socket) -> socket.socket:
    """Return another socket bound to a held one's port (SO_REUSEPORT); it does not listen."""
    bound = _socket()
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    bound.bind((LOOPBACK, _number(held)))
    return bound


def _bind_free() -> socket.socket:
    """Return a socket bound to a random free loopback port, 20000 to 32767; raise if none."""
    for _ in range(_TRIES):
        # Without SO_REUSEADDR: then the kernel refuses a port that any other socket has.
        bound = _socket()
        try:
            bound.bind((LOOPBACK, FIRST_PORT + secrets.randbelow(LAST_PORT - FIRST_PORT + 1)))
        except OSError as error:
            bound.close()
            reason = error.strerror
        else:
            return bound
    raise FailedPreconditionError(f"no free port found on {LOOPBACK}: {reason}")


def _bind_named(port: int) -> socket.socket:
    bound = _socket()
    # Connections of an earlier run in TIME_WAIT must not keep the user from the port.
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((LOOPBACK, port))
        bound.listen(_BACKLOG)  # fails if another socket listens; bind alone does not
    except OSError as error:
        bound.close()
        raise FailedPreconditionError(
            f"port {port} cannot be used: {error.strerror}; choose another with --port"
        ) from error
    return bound
