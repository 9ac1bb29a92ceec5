"""Reader of the file by which a fleet starts an agent, and the connections that it names."""

import os
import stat
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from svc_common.access.security import BusLogin, SecuritySettings
from svc_common.access.transport import PLAIN, Transport
from svc_common.errors import InvalidArgumentError
from svc_common.rpc.client import UNIX_SCHEME
from svc_trial_runner.agent_settings import AgentSettings, ConnectionKind, parse_agent_settings
from svc_trial_runner.enrolment import FRONT_NAME

STANDARD_INPUT: Final = "-"
"""Name of the standard input in place of a file."""
AUTHORITY_NAME: Final = "authority.pem"
"""File with the certificate of the authority, in the agent's home."""
MANAGER_SOCKET: Final = "manager.sock"
"""Socket of the manager: one in the folder of each connection, and a link to the present one."""
BUS_SOCKET: Final = "bus.sock"
"""Socket of the bus in the folder of each connection."""
_LIMIT_BYTES: Final = 1_000_000
_OTHERS: Final = 0o077


@dataclass(frozen=True, slots=True)
class ReachedServers:
    """Addresses and credentials of bus and manager as an agent of a fleet reaches them."""

    nats_url: str
    """Empty: through a socket, which is found anew for each connection."""
    manager: str
    """`host:port`, or `unix:<path>`."""
    security: SecuritySettings


def read_agent_file(name: str) -> AgentSettings:
    """Read and remove the file of settings of an agent; raise if others could have read it.

    The file has secrets, so it is gone before the first trial can look for it.

    Args:
        name: path, or `-` for the standard input.

    Raises:
        InvalidArgumentError: it cannot be read, others may read it, or its content is invalid.
    """
    if name == STANDARD_INPUT:
        return parse_agent_settings(sys.stdin.buffer.read(_LIMIT_BYTES))
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            _check_private(os.fstat(descriptor), name)
            content = file.read(_LIMIT_BYTES)
    except OSError as error:
        raise InvalidArgumentError(
            "--settings", f"must be a readable file ({error.strerror})", name
        ) from error
    settings = parse_agent_settings(content)
    try:
        Path(name).unlink()
    except OSError as error:
        raise InvalidArgumentError(
            "--settings", f"must be a file that the agent can remove ({error.strerror})", name
        ) from error
    return settings


def _check_private(facts: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(facts.st_mode):
        raise InvalidArgumentError("--settings", "must be a regular file", name)
    if facts.st_uid != os.geteuid() or facts.st_mode & _OTHERS:
        raise InvalidArgumentError(
            "--settings",
            "must be a file of this user that only this user may read",
            name,
            remedy="chmod 600 it, in a folder of a file system that knows modes",
        )


def connection_settings(fleet: AgentSettings, home: Path) -> ReachedServers:
    """Return the addresses of bus and manager and the security of their connections.

    Args:
        fleet: settings of the agent.
        home: folder of the agent; the file of the authority will be there.

    Raises:
        InvalidArgumentError: an address, folder or certificate that the kind needs is missing.
    """
    connection = fleet.connection
    login = BusLogin(_required("bus_user", fleet.bus_user), fleet.bus_password)
    _required("manager_token", fleet.manager_token)
    if connection.kind is ConnectionKind.SOCKETS:
        folder = _required("folder", connection.folder)
        manager = f"{UNIX_SCHEME}{Path(folder) / MANAGER_SOCKET}"
        return ReachedServers("", manager, SecuritySettings(bus=login))
    transport = PLAIN
    if connection.kind is ConnectionKind.TLS:
        _required("authority", connection.authority)
        transport = Transport(ca=home / AUTHORITY_NAME, server_name=FRONT_NAME)
        login = replace(login, tls_first=True)
    return ReachedServers(
        _required("bus", connection.bus),
        _required("manager", connection.manager),
        SecuritySettings(transport, bus=login),
    )


def _required(name: str, value: str) -> str:
    if not value:
        raise InvalidArgumentError(name, "must be in the settings of the agent")
    return value
