"""State of the installation's TLS front, through which agents of other machines come in."""

from __future__ import annotations

import socket
from contextlib import closing
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from nni.experiment.client import ManagerClient

CLOSED: Final = "closed; it is opened when a pool has agents on other machines"
_CONNECT_S: Final = 2.0
_LOOPBACK: Final = "127.0.0.1"


def front_state(client: ManagerClient) -> str:
    """Return address, fingerprint and state of the TLS front in words; `CLOSED` if it is closed.

    The services may have been killed since the fleet published the address, so it is connected to.
    """
    front = client.front()
    if not front.address:
        return CLOSED
    host, _, port = front.address.rpartition(":")
    is_local = client.endpoint.remote is None
    answers = is_reachable(host.strip("[]"), int(port), is_local=is_local)
    state = "open at" if answers else "not reachable at"
    return f"{state} {front.address}, authority with SHA-256 {front.authority_sha256}"


def is_reachable(host: str, port: int, *, is_local: bool) -> bool:
    """Return whether a port accepts connections at its host, or at loopback if it is local.

    Args:
        host: by which other machines reach it.
        port: the port.
        is_local: True if it is on this machine: then loopback is tried first, since a machine may
            not reach itself by the name or address that others use.
    """
    for name in ([_LOOPBACK] if is_local else []) + [host]:
        try:
            with closing(socket.create_connection((name, port), timeout=_CONNECT_S)):
                return True
        except OSError:
            continue
    return False
