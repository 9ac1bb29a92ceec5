"""Free ports of loopback for servers that tests start."""

import random
import socket
from collections import deque
from contextlib import suppress
from typing import Final

_FIRST: Final = 15_000
_END: Final = 20_000
"""First port that installations draw (`svc_standalone.held_ports`); further up, from 32768 on,
a port may become that of any outgoing connection between its choice and the start of the server."""
_RESERVED: Final = 64
"""Number of the latest ports that stay reserved; a server has bound older ones long ago."""

_random: Final = random.SystemRandom()
"""Not the seeded one: parallel processes need not try the same ports one after the other."""
_reservations: Final[deque[socket.socket]] = deque()


def free_port() -> int:
    """Return a port on which nothing listens, which no other test process has reserved.

    The reservation ends after some more ports, or with the process.
    """
    while True:
        port = _random.randrange(_FIRST, _END)
        if reserve(port):
            return port


def has_ipv6() -> bool:
    """Return whether this machine has the loopback address of IPv6."""
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


def reserve(port: int) -> bool:
    """Reserve a port among all test processes of the machine; return False unless it is free."""
    reservation = socket.socket(socket.AF_UNIX)
    try:
        # An abstract name: only one socket can have it, and it vanishes with the socket.
        reservation.bind(f"\0nni-test-port-{port}")
        _check_free(port)
    except OSError:
        reservation.close()
        return False
    _reservations.append(reservation)
    if len(_reservations) > _RESERVED:
        _reservations.popleft().close()
    return True


def _check_free(port: int) -> None:
    """Raise OSError if a process listens on a port or has bound it."""
    with socket.socket() as probe, suppress(ConnectionRefusedError):
        probe.settimeout(1.0)  # its queue may be full
        probe.connect(("127.0.0.1", port))
        raise OSError(f"a process listens on port {port}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(("127.0.0.1", port))
