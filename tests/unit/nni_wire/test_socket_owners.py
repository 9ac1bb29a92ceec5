from __future__ import annotations

import os
import socket
import sys

import pytest

from nni_wire.socket_owners import listening_socket, owners_at
from tests.support.ports import free_port
from tests.unit.nni_wire.test_local_peers import OTHER, listener_of


def is_offered() -> bool:
    """Return whether the kernel offers the diagnosis of sockets; some sandboxes do not."""
    try:
        owners_at(1)
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(not is_offered(), reason="the kernel offers no sock_diag")
SO_COOKIE = 57
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "0.0.0.0", "::"])
def test_listener_is_found_at_each_address(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.create_server((host, 0), family=family) as server:
        owners = owners_at(server.getsockname()[1])

    assert owners
    assert set(owners) == {os.geteuid()}


@pytest.mark.parametrize(
    ("listening", "called", "is_reached"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("0.0.0.0", "127.0.0.1", True),
        ("::", "127.0.0.1", True),
        ("::ffff:127.0.0.1", "127.0.0.1", True),
        ("::1", "127.0.0.1", False),
        ("127.0.0.2", "127.0.0.1", False),
        ("127.0.0.1", "::1", False),
        ("::1", "[::1]", True),
        ("::1", "localhost", True),
        ("127.0.0.1", "localhost", True),
    ],
)
def test_listener_counts_where_a_connection_reaches_it(
    listening: str, called: str, is_reached: bool
) -> None:
    family = socket.AF_INET6 if ":" in listening else socket.AF_INET
    with socket.socket(family) as server:
        if family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        server.bind((listening, 0))
        server.listen()
        found = owners_at(server.getsockname()[1], called)

    assert set(found) == ({os.geteuid()} if is_reached else set())


def test_free_port_has_no_owner() -> None:
    assert owners_at(free_port()) == []


def test_number_is_that_of_the_socket_which_listens() -> None:
    port = free_port()  # reserved: it is bound twice
    with socket.create_server(("127.0.0.1", port)) as server:
        first = listening_socket(port)
        number = server.getsockopt(socket.SOL_SOCKET, SO_COOKIE, 8)
    with socket.create_server(("127.0.0.1", port)):
        second = listening_socket(port)

    assert first == f"{int.from_bytes(number, sys.byteorder):016x}"
    assert second not in {first, ""}


def test_free_port_has_no_listening_socket() -> None:
    assert listening_socket(free_port()) == ""


@AS_ROOT
def test_listener_of_another_user_is_found() -> None:
    with listener_of(OTHER) as port:
        assert owners_at(port) == [OTHER]
        socket.create_connection(("127.0.0.1", port)).close()


@AS_ROOT
@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1"], ids=["IPv4", "mapped"])
def test_other_user_who_has_accepted_a_connection_is_found(host: str) -> None:
    with listener_of(OTHER) as port, socket.create_connection((host, port)):
        # Their listener is closed then, or about to be.
        assert set(owners_at(port)) == {OTHER}


def test_connection_that_no_process_has_accepted_has_no_owner_of_its_own() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()),
    ):
        assert owners_at(server.getsockname()[1]) == [os.geteuid()]
