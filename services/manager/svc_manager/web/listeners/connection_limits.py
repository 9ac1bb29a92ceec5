"""Limits of HTTP connections, so that callers without a token cannot take all descriptors."""

from __future__ import annotations

import resource
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Final

from svc_common.errors import ResourceExhaustedError
from svc_common.logs import get_logger

RETRY_AFTER_S: Final = 1
_CONNECTIONS_LIMIT: Final = 4_000
"""Most connections of a process, however many descriptors it may have."""
_ANONYMOUS_LIMIT: Final = 512
"""Most requests without credentials that are served at a time; streams last long."""
_PER_ADDRESS_LIMIT: Final = 128


@dataclass(frozen=True, slots=True)
class ConnectionQuota:
    """Limits of connections and of requests without credentials, for one process."""

    connections: int
    """Most connections; a further one takes the place of the one that has been idle for longest.
    Other descriptors of the process are for files, the bus and children."""
    crowded: int
    """Connections beyond which requests without credentials are refused: the reserve for others."""
    anonymous: int
    """Most requests without credentials at a time."""
    anonymous_per_address: int
    """Most of them from one address."""

    @classmethod
    def of_descriptors(cls, descriptors: int) -> ConnectionQuota:
        """Derive the limits of connections and anonymous requests from the limit of open files."""
        connections = min(_CONNECTIONS_LIMIT, descriptors // 2)
        anonymous = min(_ANONYMOUS_LIMIT, connections // 2)
        return cls(
            connections, connections * 3 // 4, anonymous, min(_PER_ADDRESS_LIMIT, anonymous // 2)
        )


class ConnectionLimits:
    """Counters of open connections and anonymous requests, compared with a process's quota.

    Args:
        quota: the limits.
    """

    def __init__(self, quota: ConnectionQuota) -> None:
        self.quota = quota
        self._connections = 0
        self._idle: dict[object, Callable[[], None]] = {}
        self._handshakes: dict[int, socket.socket] = {}
        self._anonymous: Counter[str] = Counter()

    @property
    def full(self) -> bool:
        """Whether the quota of connections is reached: a new one needs the place of another."""
        return self._connections >= self.quota.connections

    @property
    def crowded(self) -> bool:
        """Whether only callers with credentials are served, and clients must be quick."""
        return self._connections >= self.quota.crowded

    def opened(self, descriptor: int = -1) -> None:
        """Add 1 to the number of open connections.

        Args:
            descriptor: of the connection, if it was `accepted`.
        """
        self._handshakes.pop(descriptor, None)
        self._connections += 1

    def closed(self) -> None:
        """Subtract 1 from the number of open connections."""
        self._connections -= 1

    def accepted(self, connection: socket.socket) -> None:
        """Note an accepted connection until `opened`; if there are too many, close one for it.

        That is an idle one, or, where most are in their handshake, the oldest of those. A TLS
        connection is no transport before its handshake, which may take long.
        """
        self._handshakes[connection.fileno()] = connection
        if self._connections + len(self._handshakes) <= self.quota.connections:
            return
        self._handshakes = {
            number: one for number, one in self._handshakes.items() if one.fileno() == number
        }
        if self._connections + len(self._handshakes) <= self.quota.connections:
            return
        if len(self._handshakes) > self.quota.connections // 2 or not self.evict():
            oldest = self._handshakes.pop(next(iter(self._handshakes)))
            with suppress(OSError):  # the client has gone
                oldest.shutdown(socket.SHUT_RDWR)  # its handshake fails

    def idle(self, connection: object, abort: Callable[[], None]) -> None:
        """Note that a connection has no complete request; `abort` closes it, without waiting."""
        self._idle.pop(connection, None)
        self._idle[connection] = abort

    def busy(self, connection: object) -> None:
        """Note that a connection has a complete request, or is closed."""
        self._idle.pop(connection, None)

    def evict(self) -> bool:
        """Close the connection that has been idle for longest; return False if none is idle.

        A caller with a token sends its request at once, and so is not the one that is closed.
        """
        if not self._idle:
            return False
        self._idle.pop(next(iter(self._idle)))()
        return True

    @contextmanager
    def anonymous_request(self, address: str) -> Iterator[None]:
        """Count a request without a token inside the block; raise if there are too many.

        Raises:
            ResourceExhaustedError: there are too many of this address, or in all.
        """
        quota = self.quota
        if self.crowded or self._anonymous.total() >= quota.anonymous:
            raise _refusal(f"{quota.anonymous} requests without a token are served already")
        if self._anonymous[address] >= quota.anonymous_per_address:
            raise _refusal(
                f"{quota.anonymous_per_address} requests without a token are served for this "
                "address already"
            )
        self._anonymous[address] += 1
        try:
            yield
        finally:
            self._anonymous[address] -= 1
            if not self._anonymous[address]:
                del self._anonymous[address]


def _refusal(cause: str) -> ResourceExhaustedError:
    return ResourceExhaustedError(
        f"{cause}; send the token of the installation, or try again later",
        {"retry_after_s": str(RETRY_AFTER_S)},
    )


def raise_descriptor_limit() -> int:
    """Raise this process's soft limit of open files to its hard limit; return the limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == hard:
        return hard
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    except (OSError, ValueError) as error:  # a hard limit beyond the kernel's own
        get_logger().warning("limit of open files not raised", limit=soft, error=str(error))
        return soft
    return hard
