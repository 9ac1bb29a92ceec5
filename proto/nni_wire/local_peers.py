"""Owners of ports of this machine: who would get what is sent to a loopback address.

Any user may listen on a port that has become free. Before a client sends a secret to 127.0.0.1 it
therefore checks that no other user has a socket there. A socket at another address of the port,
which any user may open at any time, gets nothing and is no reason to send nothing. The kernel says
who owns a socket (`sock_diag(7)`, or `/proc/net/tcp` where it is not offered); only root can change
that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from nni_wire.socket_owners import owners_at

_TABLES: Final = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED, _LISTEN = "01", "0A"
_LOOPBACK_6: Final = "00000000000000000000000001000000"
"""`::1` in a table."""
_UNKNOWN_INODE: Final = "0"
"""Of a connection that no process has accepted yet."""


class ForeignOwnerError(OSError):
    """Error that another user of this machine has a socket at a port; names port and user."""

    def __init__(self, port: int, uid: int) -> None:
        super().__init__(
            f"port {port} of this machine belongs to the user with number {uid}, not to you: "
            "nothing is sent there"
        )
        self.port = port
        self.uid = uid


def is_loopback(host: str) -> bool:
    """Return whether a host is `localhost` or `::1` or begins with `127.`; no name is resolved."""
    return host in {"localhost", "::1", "[::1]"} or host.startswith("127.")


def check_owner(
    port: int, uid: int | None = None, tables: tuple[str, ...] = (), *, host: str = "localhost"
) -> None:
    """Raise ForeignOwnerError unless sockets at a loopback port are root's or the user `uid`'s.

    Args:
        port: of a loopback address.
        uid: of the user; None: of this process.
        tables: files with the kernel's tables of sockets; empty: the kernel is asked, or its own
            tables are read. Where there are none, nothing is checked.
        host: loopback address, or name, to which the secret is sent.

    Raises:
        ForeignOwnerError: another user listens there, or has accepted a connection.
    """
    allowed = {os.geteuid() if uid is None else uid, 0}
    for owner in _listed_owners(port, tables, host) if tables else _owners(port, host):
        if owner not in allowed:
            raise ForeignOwnerError(port, owner)


def _owners(port: int, host: str) -> Iterable[int]:
    try:
        return owners_at(port, host)
    except (OSError, AttributeError):  # a sandbox, or another system
        return _listed_owners(port, _TABLES, host)


def _listed_owners(port: int, tables: tuple[str, ...], host: str) -> Iterator[int]:
    wanted = f":{port:04X}"
    elsewhere = _LOOPBACK_6 + wanted if host.startswith("127.") else ""
    for table in tables:
        try:
            lines = Path(table).read_text("ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            if wanted not in line:
                continue
            fields = line.split()
            if (
                fields[1].endswith(wanted)
                and fields[1] != elsewhere
                and fields[3] in {_ESTABLISHED, _LISTEN}
                and fields[9] != _UNKNOWN_INODE
            ):
                yield int(fields[7])
