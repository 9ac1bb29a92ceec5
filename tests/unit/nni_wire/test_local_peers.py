from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nni_wire.local_peers import ForeignOwnerError, check_owner
from tests.support.ports import free_port

OTHER = 65534


LISTENER = """\
import os, signal, socket, sys
os.setuid(int(sys.argv[1]))
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
accepted = server.accept()
print("accepted", flush=True)
server.close()
signal.pause()
"""


@contextmanager
def listener_of(uid: int) -> Iterator[int]:
    """Yield the port of a listener of another user, a real process."""
    command = [sys.executable, "-c", LISTENER, str(uid)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
            assert process.stdout.readline() == "accepted\n"
        finally:
            process.kill()


def test_own_listener_is_accepted() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_owner(server.getsockname()[1])


def test_free_port_is_accepted() -> None:
    check_owner(free_port())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_listener_of_another_user_is_refused_and_named() -> None:
    with listener_of(OTHER) as port:
        with pytest.raises(ForeignOwnerError, match=f"port {port} .* number {OTHER}"):
            check_owner(port, OTHER + 1)
        check_owner(port, OTHER)
        socket.create_connection(("127.0.0.1", port)).close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_connection_that_another_user_has_accepted_is_refused() -> None:
    with listener_of(OTHER) as port, socket.create_connection(("127.0.0.1", port)) as client:
        with pytest.raises(ForeignOwnerError):
            check_owner(port, OTHER + 1)
        assert client.getpeername()[1] == port


def test_without_tables_nothing_is_checked(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        check_owner(server.getsockname()[1], OTHER, (str(tmp_path / "none"),))


def test_table_is_read_by_port_state_and_inode(tmp_path: Path) -> None:
    table = tmp_path / "tcp"
    row = "0: 0100007F:{local} 0100007F:{remote} {state} 0:0 00:0 0 {uid} 0 {inode} 1"
    rows = [
        row.format(local="1F91", remote="1F90", state="01", uid=7, inode=5),
        row.format(local="1F90", remote="0000", state="06", uid=7, inode=5),
        row.format(local="1F90", remote="1F91", state="01", uid=7, inode=0),
    ]
    table.write_text("head\n" + "\n".join(rows) + "\n")
    check_owner(8080, 5, (str(table),))

    rows.append(row.format(local="1F90", remote="1F91", state="01", uid=7, inode=9))
    table.write_text("head\n" + "\n".join(rows) + "\n")
    with pytest.raises(ForeignOwnerError):
        check_owner(8080, 5, (str(table),))


def test_row_of_another_address_is_not_counted(tmp_path: Path) -> None:
    table = tmp_path / "tcp6"
    rest = "00000000000000000000000000000000:0000 0A 0:0 00:0 0 7 0 9 1"
    table.write_text(f"head\n0: 00000000000000000000000001000000:1F90 {rest}\n")

    check_owner(8080, 5, (str(table),), host="127.0.0.1")
    for host in ("localhost", "::1"):
        with pytest.raises(ForeignOwnerError):
            check_owner(8080, 5, (str(table),), host=host)

    table.write_text(f"head\n0: 00000000000000000000000000000000:1F90 {rest}\n")
    with pytest.raises(ForeignOwnerError):
        check_owner(8080, 5, (str(table),), host="127.0.0.1")


IPV6_LISTENER = """\
import os, signal, socket, sys
os.setuid(int(sys.argv[1]))
server = socket.create_server(("::1", int(sys.argv[2])), family=socket.AF_INET6)
print("listens", flush=True)
signal.pause()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_other_user_at_another_address_of_the_port_is_not_counted() -> None:
    with socket.create_server(("127.0.0.1", free_port())) as server:
        port = server.getsockname()[1]
        command = [sys.executable, "-c", IPV6_LISTENER, str(OTHER), str(port)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                assert process.stdout.readline() == "listens\n"

                check_owner(port, host="127.0.0.1")
                with pytest.raises(ForeignOwnerError, match=f"number {OTHER}"):
                    check_owner(port, host="localhost")
            finally:
                process.kill()
