import socket

import pytest

from svc_common.errors import FailedPreconditionError
from svc_standalone.app import free_ports


def test_ports_differ() -> None:
    ports = free_ports(3, 0)

    assert len(set(ports)) == 4


def test_ports_are_outside_the_range_of_outgoing_connections() -> None:
    assert all(port < 32_768 for port in free_ports(20, 0))


def test_fixed_port_is_the_last() -> None:
    wanted = free_ports(0, 0)[0]

    assert free_ports(2, wanted)[-1] == wanted


def test_taken_port_is_named() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]

        with pytest.raises(FailedPreconditionError, match=f"port {port} cannot be used"):
            free_ports(1, port)
