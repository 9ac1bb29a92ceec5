"""Free ports, in one process and in several."""

import socket
import subprocess
import sys
from pathlib import Path

from tests.support.ports import free_port, reserve

ROOT = Path(__file__).parents[3]
RESERVE = "import sys; from tests.support.ports import reserve; print(reserve(int(sys.argv[1])))"


def elsewhere(port: int) -> str:
    """Return what another process prints that reserves a port."""
    command = [sys.executable, "-c", RESERVE, str(port)]
    return subprocess.run(
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


def test_latest_ports_of_a_process_differ() -> None:
    ports = [free_port() for _ in range(64)]

    assert len(set(ports)) == 64


def test_port_of_one_process_is_not_given_to_another() -> None:
    port = free_port()

    assert elsewhere(port) == "False"


def test_port_with_a_listener_is_not_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert not reserve(listener.getsockname()[1])
