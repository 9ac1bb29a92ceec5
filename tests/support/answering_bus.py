"""Bus that answers PING of its first client, as long as it runs, and accepts no other one."""

import sys

from svc_common import environment
from svc_standalone.bus_probe import BusLogin
from svc_standalone.children import Command

_PROGRAM = """
import socket
from pathlib import Path
server = socket.create_server(("127.0.0.1", %d), backlog=0)
client, _ = server.accept()
client.sendall(b"INFO {}\\r\\n")
for line in client.makefile("rb"):
    if line == b"PING\\r\\n":  # the credentials before it may arrive alone
        client.sendall(b"PONG\\r\\n")
        Path("answered").touch()
"""


def answering_bus(port: int) -> Command:
    """Return the command of the bus; it writes the file `answered` into its working directory."""
    return Command(
        "bus",
        (sys.executable, "-c", _PROGRAM % port),
        environment.current(),
        reports_ready=False,
        probe=BusLogin(port, "supervisor", "secret"),
    )
