"""Limits of the connections of the TLS front, by client address and in all; pure."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

from svc_common.access.front_addresses import counted_address

MOST_CONNECTIONS: Final = 3_000
"""Two per agent; each costs two descriptors. The manager takes a quarter of its descriptors as
connections of gRPC, 4,000 at most: some are left for clients of this machine."""
MOST_OF_ADDRESS: Final = 1_000
"""Machines of a cluster often share one address."""
MOST_HANDSHAKES: Final = 200
MOST_HANDSHAKES_OF_ADDRESS: Final = 40
"""A handshake costs some milliseconds of CPU, before the client has proved anything."""
_RESERVED_DESCRIPTORS: Final = 200
"""For the other work of the process."""


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of connections and handshakes at once, in all and by address."""

    connections: int = MOST_CONNECTIONS
    of_address: int = MOST_OF_ADDRESS
    handshakes: int = MOST_HANDSHAKES
    handshakes_of_address: int = MOST_HANDSHAKES_OF_ADDRESS

    @classmethod
    def of_descriptors(cls, limit: int) -> "ConnectionLimits":
        """Derive the limits from the number of files that a process may open."""
        own, of_manager = (limit - _RESERVED_DESCRIPTORS) // 2, limit * 3 // 16
        most = max(20, min(MOST_CONNECTIONS, own, of_manager))
        return cls(most, min(MOST_OF_ADDRESS, most // 2))


class ConnectionCounts:
    """Counts of connections and handshakes, in all and by address, that refuse more at limits.

    Args:
        limits: which counts are refused.
    """

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._connections: Counter[str] = Counter()
        self._handshakes: Counter[str] = Counter()

    def begin(self, address: str) -> bool:
        """Count a new connection in its handshake; return False if a limit refuses it."""
        limits, address = self._limits, counted_address(address)
        if (
            self._connections.total() >= limits.connections
            or self._connections[address] >= limits.of_address
            or self._handshakes.total() >= limits.handshakes
            or self._handshakes[address] >= limits.handshakes_of_address
        ):
            return False
        self._connections[address] += 1
        self._handshakes[address] += 1
        return True

    def shake(self, address: str) -> None:
        """Count the end of a handshake, successful or not."""
        _decrement(self._handshakes, counted_address(address))

    def end(self, address: str) -> None:
        """Count the end of a connection."""
        _decrement(self._connections, counted_address(address))


def _decrement(counter: Counter[str], address: str) -> None:
    counter[address] -= 1
    if counter[address] <= 0:
        del counter[address]  # addresses are many
