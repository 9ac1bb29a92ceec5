"""Owners of single sockets, by the diagnosis interface of the kernel (`sock_diag(7)`).

The tables in `/proc/net` list all sockets of the machine, which costs milliseconds; this interface
finds one by its addresses.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator
from typing import Final, TypeAlias

_SOCK_DIAG: Final = 4
_BY_FAMILY: Final = 20
_REQUEST: Final = 1
_ERROR: Final = 2
_NOT_FOUND: Final = 2
"""ENOENT, as the interface reports that there is no such socket."""
_HEADER: Final = struct.Struct("=IHHII")
"""Length, type, flags, sequence, port of a netlink message."""
_QUESTION: Final = struct.Struct("=BBBBI")
"""Family, protocol, extensions, padding, states."""
_ANSWER: Final = struct.Struct("=4x48x12xII")
"""User and inode of a socket, behind its state, addresses, timer and queues."""
_NUMBER: Final = struct.Struct("=II")
"""Number of a socket that no other one gets before the next boot: lower and upper half."""
_NUMBER_AT: Final = _HEADER.size + 44
"""Behind the state and the addresses in an answer."""
_ANY_COOKIE: Final = b"\xff" * 8
_ANSWER_BYTES: Final = 4096
_TIMEOUT_S: Final = 1.0
_LOOPBACK: Final = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
_DESCRIPTORS: Final = "/proc/self/fd"
_FAMILIES: Final = {2: socket.AF_INET, 4: socket.AF_INET6}
"""By the length of an address."""
_ANYWHERE: Final = {socket.AF_INET: "0.0.0.0", socket.AF_INET6: "::"}  # noqa: S104 - no bind

Endpoint: TypeAlias = tuple[str, int]


def owners_at(port: int, host: str = "localhost") -> list[int]:
    """Return the uids of a loopback port's listeners and this process's peers; empty: none.

    Args:
        port: the port.
        host: loopback address whose listeners count, also those of all addresses; a name: of both.

    Raises:
        OSError: the kernel does not offer the interface, or does not answer within a second.
    """
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as diagnosis:
        diagnosis.settimeout(_TIMEOUT_S)
        found = [
            _owner(diagnosis, family, (address, port), (_ANYWHERE[family], 0))
            for family, address in _addresses(host)
        ]
        found += [_owner(diagnosis, *ends) for ends in _connections(port)]
    return [owner for owner in found if owner is not None]


def _addresses(host: str) -> tuple[tuple[socket.AddressFamily, str], ...]:
    """Return the loopback addresses that a host stands for: itself, or both for a name."""
    if host.startswith("127."):
        return ((socket.AF_INET, host),)
    plain = host.strip("[]")
    return ((socket.AF_INET6, plain),) if ":" in plain else _LOOPBACK


def listening_socket(port: int) -> str:
    """Return the kernel's cookie (hex) of the socket listening on a loopback port; empty: unknown.

    No other socket has this number before the next boot.

    Returns:
        Empty: none listens, or the kernel does not offer the interface.
    """
    family, host = _LOOPBACK[0]
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as diagnosis:
            diagnosis.settimeout(_TIMEOUT_S)
            answer = _answer(diagnosis, family, (host, port), (_ANYWHERE[family], 0))
    except (OSError, AttributeError):  # a sandbox, or another system
        return ""
    if answer is None:
        return ""
    low, high = _NUMBER.unpack_from(answer, _NUMBER_AT)
    return f"{high << 32 | low:016x}"


def _owner(diagnosis: socket.socket, family: int, local: Endpoint, remote: Endpoint) -> int | None:
    """Return the uid of the socket between two endpoints; None: no socket, or not yet accepted.

    Raises:
        OSError: the kernel does not offer the interface.
    """
    answer = _answer(diagnosis, family, local, remote)
    if answer is None:
        return None
    owner, inode = _ANSWER.unpack_from(answer, _HEADER.size)
    return int(owner) if inode else None  # without an inode no process has accepted it yet


def _answer(
    diagnosis: socket.socket, family: int, local: Endpoint, remote: Endpoint
) -> bytes | None:
    """Query the kernel for the TCP socket between two endpoints; return its raw reply; None: none.

    Raises:
        OSError: the kernel does not offer the interface.
    """
    question = _QUESTION.pack(family, socket.IPPROTO_TCP, 0, 0, 0) + _ends(family, local, remote)
    length = _HEADER.size + len(question)
    diagnosis.send(_HEADER.pack(length, _BY_FAMILY, _REQUEST, 1, 0) + question)
    answer = diagnosis.recv(_ANSWER_BYTES)
    kind = _HEADER.unpack_from(answer)[1]
    if kind == _ERROR:
        number = -struct.unpack_from("=i", answer, _HEADER.size)[0]
        if number == _NOT_FOUND:
            return None
        raise OSError(number, os.strerror(number))
    return answer


def _ends(family: int, local: Endpoint, remote: Endpoint) -> bytes:
    addresses = b"".join(
        socket.inet_pton(family, host).ljust(16, b"\0") for host, _ in (local, remote)
    )
    return struct.pack("!HH", local[1], remote[1]) + addresses + bytes(4) + _ANY_COOKIE


def _connections(port: int) -> Iterator[tuple[int, Endpoint, Endpoint]]:
    """Yield (family, far end, near end) of this process's sockets connected to a remote port."""
    for name in os.listdir(_DESCRIPTORS):  # noqa: PTH208 - before each call: paths cost as much again
        try:
            if not os.readlink(f"{_DESCRIPTORS}/{name}").startswith("socket:"):  # noqa: PTH115 - as above
                continue
            copy = os.dup(int(name))
        except OSError:  # closed meanwhile
            continue
        ends = _endpoints_of(copy, port)
        if ends is not None:
            yield ends


def _endpoints_of(descriptor: int, port: int) -> tuple[int, Endpoint, Endpoint] | None:
    """Close a descriptor; return family, remote and local endpoint; None: peer not at the port."""
    try:
        # Python would ask for the family, which an address has; those of IPv6 are the longest.
        connection = socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 0, descriptor)
    except OSError:
        os.close(descriptor)  # it is no socket any more
        return None
    with connection:
        try:
            peer = connection.getpeername()
            if not isinstance(peer, tuple) or len(peer) not in _FAMILIES or peer[1] != port:
                return None
            if not isinstance(peer[0], str):  # netlink
                return None
            near = connection.getsockname()
        except OSError:  # it is not connected
            return None
    return _FAMILIES[len(peer)], (peer[0], port), (near[0], near[1])
