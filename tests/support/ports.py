"""Free ports of loopback for servers that tests start."""

import random
import socket
from typing import Final

_FIRST: Final = 15_000
_END: Final = 32_768
"""First port of Linux's ephemeral range: a port from there may become that of any outgoing
connection between its choice and the start of the server."""

_random: Final = random.SystemRandom()
"""Not the seeded one: tests in parallel processes must not choose the same ports."""


def free_port() -> int:
    """Return a port on which nothing listens, below the ephemeral range."""
    while True:
        port = _random.randrange(_FIRST, _END)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
