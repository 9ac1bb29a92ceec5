"""Address and port of the TLS front: where it listens, and how other machines reach it."""

import errno
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Final

from svc_common import environment
from svc_common.access.transport import is_loopback
from svc_trial_runner.fleet.adapters.stored_port import read_port, write_port
from svc_trial_runner.fleet.ports import FrontEndpoint, PlatformError

FIRST_PORT: Final = 8081
"""The port behind that of the first page, where none is configured and none was used before."""
EVERYWHERE: Final = ""
"""Host that stands for all addresses of this machine."""
_TRIES: Final = 100
_HIGHEST_FIRST: Final = 65_535 - _TRIES
"""Last port from which on free ones are looked for."""
_BACKLOG: Final = 128
_PORT_FILE: Final = "port"
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._-]+|[0-9A-Fa-f:]+|\[[0-9A-Fa-f:]+\])\Z")
_OTHER_NETWORK: Final = ("192.0.2.1", 9)
"""Address of no machine (RFC 5737); a datagram socket that is connected to it sends nothing."""


def check_host(host: str) -> None:
    """Raise PlatformError unless `nniManagerIp` is empty, a name or an address.

    Raises:
        PlatformError: it is neither.
    """
    if host and not _HOST.match(host):
        raise PlatformError(
            f"nniManagerIp must be a name or address without a port, got {host[:80]!r}",
            permanent=True,
        )


def with_host(endpoint: FrontEndpoint, host: str, *, published: bool = False) -> FrontEndpoint:
    """Return the TLS front's endpoint with another host; raise PlatformError if on loopback only.

    Args:
        endpoint: of the front.
        host: name or address.
        published: True if it listens on all addresses, whatever its own host is.

    Raises:
        PlatformError: it listens on loopback only, where other machines do not reach it.
    """
    own, _, port = endpoint.address.rpartition(":")
    if not published and is_loopback(own.strip("[]")) and not is_loopback(host.strip("[]")):
        raise PlatformError(
            f"the TLS front listens at {endpoint.address} only, not for nniManagerIp {host}",
            f"set {environment.NNI_FRONT_HOST} to an address of this machine that others reach",
            permanent=True,
        )
    return replace(endpoint, address=f"{bracketed(host)}:{port}")


def bracketed(host: str) -> str:
    """Return a host for use in `host:port`, an IPv6 address in brackets."""
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def reachable_host(configured: str, fallback: str = "") -> str:
    """Return the configured host without brackets, or the address of the default route.

    Args:
        configured: empty: none is.
        fallback: host of a machine that has no default route; empty: none is known.

    Raises:
        PlatformError: there is no default route.
    """
    if configured:
        return configured.strip("[]")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_OTHER_NETWORK)
        except OSError as error:
            if fallback:
                return fallback.strip("[]")
            raise PlatformError(
                f"this machine has no address that others reach: {error.strerror}",
                "connect it to a network, or set NNI_FRONT_HOST to its name or address",
            ) from error
        return str(probe.getsockname()[0])


def listen(host: str, configured_port: int, folder: Path) -> socket.socket:
    """Listen at the configured, last or first free port; store its number and return the socket.

    Args:
        host: that other machines reach; on loopback the socket listens there only, else on all
            addresses of this machine.
        configured_port: 0: the port of the last start, at first `FIRST_PORT` or the next free one.
        folder: where the port is written.

    Raises:
        PlatformError: the port is taken, or none is free.
    """
    known = read_port(folder / _PORT_FILE)
    first = known if 0 < known <= _HIGHEST_FIRST else FIRST_PORT
    candidates = [configured_port] if configured_port else [*range(first, first + _TRIES)]
    reason = ""
    for port in candidates:
        try:
            listening = _bound(host, port)
        except OSError as error:
            reason = error.strerror or str(error)
            if error.errno not in {errno.EADDRINUSE, errno.EACCES}:
                break
            continue
        try:
            if port != known:
                write_port(folder / _PORT_FILE, port)
        except PlatformError:
            listening.close()
            raise
        return listening
    where = f"port {configured_port}" if configured_port else f"any port from {first} on"
    raise PlatformError(f"the TLS front cannot use {where}: {reason}", "set NNI_FRONT_PORT")


def _bound(host: str, port: int) -> socket.socket:
    if is_loopback(host):
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=_BACKLOG)
    if socket.has_dualstack_ipv6():
        return socket.create_server(
            ("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
        )
    return socket.create_server(("", port), backlog=_BACKLOG)
