"""Reader of the process environment: the only module of the services that touches it.

It defines the names of the variables that several services share; the `settings.py` of a service
says how it uses them.

The environment of a process is readable for programs of its user and container, so secrets come by
an inherited descriptor or by files (`load_secrets`). `text` and its kin find them like variables.
"""

import json
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from svc_common.errors import InvalidArgumentError

NNI_HOME: Final = "NNI_HOME"
"""Folder of the installation's state; default `~/.local/state/nni`."""
NNI_NATS_URL: Final = "NNI_NATS_URL"
"""Address of the bus, e.g. `nats://127.0.0.1:4222`."""
NNI_TOKEN: Final = "NNI_TOKEN"  # noqa: S105 - the name of a variable, not a secret
"""Token of this installation: clients and services authenticate with it."""
NNI_RUNNER_TOKEN: Final = "NNI_RUNNER_TOKEN"  # noqa: S105 - the name of a variable, not a secret
"""Token that agents authenticate with at the manager (as their `NNI_TOKEN`); it allows uploads and
downloads of blobs only. Unset: they use the installation's."""
NNI_READY_FD: Final = "NNI_READY_FD"
"""File descriptor of an inherited pipe to which a child writes that it is ready; unset: none."""
NNI_SECRETS_FD: Final = "NNI_SECRETS_FD"
"""Descriptor of an inherited file with a JSON object of variables that are secret; unset: none."""
NNI_SECRETS_FILE: Final = "NNI_SECRETS_FILE"
"""Files with lines `NAME=value` of secret variables, or folders with a file named after each of
them, separated by colons; unset: none."""
NNI_CODE_USER: Final = "NNI_CODE_USER"
"""`UID:GID` of the account of user code, set by the entry point; unset: the service's own."""
GRPC_ENABLE_FORK_SUPPORT: Final = "GRPC_ENABLE_FORK_SUPPORT"
"""Whether grpc handles forks of its process; the entry point switches it off for services."""
NNI_HEALTH: Final = "NNI_HEALTH"
"""`host:port` of `/livez` and `/readyz`, which need no token and tell nothing else; unset: none."""
NNI_HEARTBEAT_FD: Final = "NNI_HEARTBEAT_FD"
"""Descriptor of an inherited pipe to which a service writes while its event loop runs; unset:
none."""
NNI_LOG_LEVEL: Final = "NNI_LOG_LEVEL"
"""Lowest level that is logged: debug, info (default), warning, error."""
NNI_DISPATCHER_GRPC: Final = "NNI_DISPATCHER_GRPC"
"""`host:port` on which the dispatcher listens and the manager calls it."""
NNI_COMPRESSOR_GRPC: Final = "NNI_COMPRESSOR_GRPC"
"""`host:port` on which the compressor listens and the manager calls it; unset at the manager: there
is none."""
NNI_NAS_GRPC: Final = "NNI_NAS_GRPC"
"""`host:port` on which the NAS service listens and the manager calls it; unset there: none."""
NNI_MANAGER_GRPC: Final = "NNI_MANAGER_GRPC"
"""`host:port` on which the manager listens for gRPC; port 0: a free one, reported when ready."""
NNI_MANAGER_HTTP: Final = "NNI_MANAGER_HTTP"
"""`host:port` on which the manager listens for HTTP; port 0: a free one, reported when ready."""
NNI_MANAGER_HTTP_FD: Final = "NNI_MANAGER_HTTP_FD"
"""Descriptor of an inherited listening socket at `NNI_MANAGER_HTTP`; unset: it is bound anew."""
NNI_LISTENERS_FD: Final = "NNI_LISTENERS_FD"
"""Descriptor of an inherited socket to the supervisor, which keeps further sockets; unset: none."""
NNI_FLEET_DEMAND_FD: Final = "NNI_FLEET_DEMAND_FD"
"""Descriptor of an inherited socket to the supervisor, which starts the fleet when the manager
writes to it; unset: the fleet is started otherwise."""
NNI_CREDENTIALS_FD: Final = "NNI_CREDENTIALS_FD"
"""Descriptor of an inherited socket to the supervisor, which issues credentials of agents; unset:
none."""
NNI_AGENT_USERS: Final = "NNI_AGENT_USERS"
"""Folder that the fleet of a deployment shares with managers and bus: it writes users of the bus
and callers of the manager that are agents there; unset: the supervisor issues credentials."""
NNI_MANAGER_FRONT_GRPC: Final = "NNI_MANAGER_FRONT_GRPC"
"""`host:port` on which the manager listens for calls that come through the TLS front of a fleet in
another container; agents only are served there. Unset: it does not."""
NNI_PORTS_HELD: Final = "NNI_PORTS_HELD"
"""`1` if the supervisor holds the ports of gRPC, which servers bind beside it; default no."""
NNI_BUS_OWNER: Final = "NNI_BUS_OWNER"
"""Number of the user that runs the bus on this machine: no other one is talked to; unset: any."""
NNI_BUS_FOLDER: Final = "NNI_BUS_FOLDER"
"""Folder of the data of a bus on this machine, whose disk is named if it is full; unset: none."""
NNI_BUS_REPLICAS: Final = "NNI_BUS_REPLICAS"
"""Replicas of each stream on a clustered bus; default 1."""
NNI_METRICS: Final = "NNI_METRICS"
"""`host:port` of `/metrics` of a service without a web server; port 0: a free one."""
NNI_VERSION: Final = "NNI_VERSION"
"""Version of NNI that the supervisor passes to its children, which saves them the look-up."""
NNI_S3_ENDPOINT: Final = "NNI_S3_ENDPOINT"
"""`http://host:port` or `https://host:port` of the S3 server; unset: a folder holds the blobs."""
NNI_S3_BUCKET: Final = "NNI_S3_BUCKET"
"""Bucket of this installation, created if missing; default `nni`."""
NNI_S3_PREFIX: Final = "NNI_S3_PREFIX"
"""Folder within the bucket, for installations that share one; default none."""
NNI_S3_REGION: Final = "NNI_S3_REGION"
"""Region of the bucket; default `us-east-1`, which self-hosted servers accept."""
NNI_S3_ACCESS_KEY: Final = "NNI_S3_ACCESS_KEY"
"""Access key of the account at the S3 server."""
NNI_S3_SECRET_KEY: Final = "NNI_S3_SECRET_KEY"  # noqa: S105 - the name of a variable, not a secret
"""Secret key of that account."""
NNI_REDIS_URL: Final = "NNI_REDIS_URL"
"""`redis://[user:password@]host:port/database` or `rediss://…`; unset: views are kept elsewhere."""
NNI_REDIS_PASSWORD: Final = "NNI_REDIS_PASSWORD"  # noqa: S105 - the name of a variable, not a secret
"""Password for an `NNI_REDIS_URL` that has none."""

NNI_NATS_USER: Final = "NNI_NATS_USER"
"""User at the bus, with the permissions of this process; unset: the bus has one token."""
NNI_NATS_PASSWORD: Final = "NNI_NATS_PASSWORD"  # noqa: S105 - the name of a variable, not a secret
"""Password of that user."""
NNI_NATS_TLS_FIRST: Final = "NNI_NATS_TLS_FIRST"
"""Whether the bus speaks TLS from the first byte on (`handshake_first`); default no."""
NNI_TLS_CERT_FILE: Final = "NNI_TLS_CERT_FILE"
"""PEM certificate chain of this process, for its clients and for servers that ask for one."""
NNI_TLS_KEY_FILE: Final = "NNI_TLS_KEY_FILE"
"""PEM key of that certificate."""
NNI_TLS_CA_FILE: Final = "NNI_TLS_CA_FILE"
"""PEM authority of the services, bus and stores that are called; set: calls are encrypted."""
NNI_TLS_CLIENT_CA_FILE: Final = "NNI_TLS_CLIENT_CA_FILE"
"""PEM authority of client certificates: gRPC requires one, HTTP accepts one; unset: no mTLS."""
NNI_FRONT_HOST: Final = "NNI_FRONT_HOST"
"""Name or address of this machine for agents elsewhere; unset: that of its default route."""
NNI_FRONT_PORT: Final = "NNI_FRONT_PORT"
"""Port of the TLS front; unset: the one it had last, at first 8081 or the next free one."""
NNI_ACCESS_FILE: Final = "NNI_ACCESS_FILE"
"""File of callers and their roles, written by `nnictl token`; unset: `NNI_TOKEN` alone."""
NNI_INSECURE: Final = "NNI_INSECURE"
"""Whether plain text off loopback is allowed; default no: the process refuses to start."""

SECURITY_VARIABLES: Final = frozenset(
    {
        NNI_NATS_TLS_FIRST,
        NNI_TLS_CERT_FILE,
        NNI_TLS_KEY_FILE,
        NNI_TLS_CA_FILE,
        NNI_TLS_CLIENT_CA_FILE,
        NNI_ACCESS_FILE,
        NNI_INSECURE,
    }
)
"""Variables of the security of a deployment; services on loopback need none of them."""

SECRET_VARIABLES: Final = frozenset(
    {
        NNI_TOKEN,
        NNI_RUNNER_TOKEN,
        NNI_NATS_PASSWORD,
        NNI_S3_ACCESS_KEY,
        NNI_S3_SECRET_KEY,
        NNI_REDIS_URL,
        NNI_REDIS_PASSWORD,
    }
)
"""Variables whose values are secret: no process that other programs can inspect has them."""

_SERVICE_VARIABLES: Final = (
    SECURITY_VARIABLES
    | SECRET_VARIABLES
    | frozenset(
        {
            NNI_NATS_URL,
            NNI_READY_FD,
            NNI_HEARTBEAT_FD,
            NNI_SECRETS_FD,
            NNI_SECRETS_FILE,
            NNI_CODE_USER,
            GRPC_ENABLE_FORK_SUPPORT,
            NNI_HEALTH,
            NNI_METRICS,
            NNI_DISPATCHER_GRPC,
            NNI_COMPRESSOR_GRPC,
            NNI_NAS_GRPC,
            NNI_MANAGER_GRPC,
            NNI_MANAGER_HTTP,
            NNI_MANAGER_HTTP_FD,
            NNI_LISTENERS_FD,
            NNI_FLEET_DEMAND_FD,
            NNI_CREDENTIALS_FD,
            NNI_AGENT_USERS,
            NNI_MANAGER_FRONT_GRPC,
            NNI_PORTS_HELD,
            NNI_BUS_OWNER,
            NNI_BUS_FOLDER,
            NNI_S3_ENDPOINT,
            NNI_NATS_USER,
        }
    )
)
_DEFAULT_HOME: Final = "~/.local/state/nni"
_ADDRESS: Final = re.compile(r"(.+):([0-9]{1,5})")
"""Host and port; the last colon parts them."""
_LAST_PORT: Final = 65_535
_DESCRIPTORS: Final = "/proc/self/fd/"
_SECRETS_LIMIT_BYTES: Final = 1_000_000
_secrets: Final[dict[str, str]] = {}
"""Values that `load_secrets` has read."""


def load_secrets() -> None:
    """Move secrets from descriptor, files and environment into this process's memory.

    To be called once, at the start of a process. Values of the descriptor win over those of files,
    and these over variables of the environment.

    Raises:
        InvalidArgumentError: a file cannot be read, or has a line that is no `NAME=value`.
    """
    found = {name: os.environ.pop(name) for name in SECRET_VARIABLES if os.environ.get(name)}
    for name in filter(None, os.environ.pop(NNI_SECRETS_FILE, "").split(":")):
        found |= read_secrets(Path(name))
    descriptor = os.environ.pop(NNI_SECRETS_FD, "")
    if descriptor:
        with open(int(descriptor), "rb") as file:  # noqa: PTH123 - a descriptor
            found |= json.load(file)
    _secrets.update(found)
    key = os.environ.get(NNI_TLS_KEY_FILE, "")
    if key.startswith(_DESCRIPTORS):  # see `entry_point`
        os.set_inheritable(int(key.removeprefix(_DESCRIPTORS)), False)  # noqa: FBT003 - its only way


def read_secrets(path: Path) -> dict[str, str]:
    """Read secrets from a file of `NAME=value` lines, or from a folder with a file for each.

    Args:
        path: the file, or a folder with a file for each variable, as clusters mount secrets.

    Raises:
        InvalidArgumentError: a file cannot be read, or a line has another form.
    """
    if path.is_dir():
        places = {name: path / name for name in sorted(SECRET_VARIABLES)}
        return {name: _text_of(place).strip() for name, place in places.items() if place.exists()}
    found: dict[str, str] = {}
    for number, line in enumerate(_text_of(path).splitlines(), 1):
        name, equals, value = line.strip().partition("=")
        if not name or name.startswith("#"):
            continue
        if not equals:
            raise InvalidArgumentError(
                NNI_SECRETS_FILE, f"must have lines NAME=value; line {number} has no '='", str(path)
            )
        found[name] = value
    return found


def _text_of(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_SECRETS_LIMIT_BYTES).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(
            NNI_SECRETS_FILE, f"must name readable text files ({error})", str(path)
        ) from error


def text(name: str, default: str | None = None) -> str:
    """Return a secret, else an environment variable, else the default; raise if there is none.

    Args:
        name: one of the constants of this module, or a service's own.
        default: for a variable that is unset or empty; None: it must be set. An optional one has
            the default "", which no value of the environment can be.

    Raises:
        InvalidArgumentError: it is required and not set.
    """
    value = _secrets.get(name) or os.environ.get(name) or default
    if value is None:
        raise InvalidArgumentError(name, "must be set in the environment")
    return value


def number(name: str, default: float | None = None) -> float:
    """Return an environment variable as a float, or the default; raise if neither, or no number.

    Raises:
        InvalidArgumentError: it is required and not set, or is no number.
    """
    value = text(name, None if default is None else repr(default))
    try:
        return float(value)
    except ValueError as error:
        raise InvalidArgumentError(name, "must be a number", value) from error


def integer(name: str, default: int | None = None) -> int:
    """Return an environment variable as an int, or the default; raise if it is no whole number.

    Raises:
        InvalidArgumentError: it is required and not set, or is no whole number.
    """
    value = text(name, None if default is None else str(default))
    try:
        return int(value)
    except ValueError as error:
        raise InvalidArgumentError(name, "must be a whole number", value) from error


def address(name: str, default: str | None = None) -> tuple[str, int]:
    """Return (host, port) of a variable `host:port`, or of the default; raise if malformed.

    Args:
        name: one of the constants of this module, or a service's own.
        default: for a variable that is unset or empty, as `host:port`; None: it must be set.

    Raises:
        InvalidArgumentError: it is required and not set, or is no `host:port`.
    """
    return parse_address(name, text(name, default))


def parse_address(name: str, value: str) -> tuple[str, int]:
    """Return (host, port) of a variable's value `host:port`; raise if it is malformed.

    Args:
        name: the variable, named in the error.
        value: its value; the host may be an address of IPv6 in brackets, which stay.

    Raises:
        InvalidArgumentError: the host is empty, or the port is no number from 0 to 65535.
    """
    parts = _ADDRESS.fullmatch(value)
    if parts is None or int(parts[2]) > _LAST_PORT:
        raise InvalidArgumentError(
            name,
            f"must be host:port with a port from 0 to {_LAST_PORT}",
            value,
            "set it to an address such as 127.0.0.1:7501",
        )
    return parts[1], int(parts[2])


def flag(name: str, *, default: bool = False) -> bool:
    """Return a variable as a boolean: `1`, `true`, `yes` or `0`, `false`, `no`; raise for others.

    Raises:
        InvalidArgumentError: it is neither.
    """
    value = text(name, "yes" if default else "no").lower()
    if value in {"1", "true", "yes"}:
        return True
    if value in {"0", "false", "no"}:
        return False
    raise InvalidArgumentError(name, "must be 1, true, yes, 0, false or no", value)


def path(name: str) -> Path | None:
    """Return the value of a variable as the path of a file; None: it is unset or empty."""
    value = os.environ.get(name)
    return Path(value).expanduser() if value else None


def host_name() -> str:
    """Return the name of this machine."""
    return socket.gethostname()


def home() -> Path:
    """Return the folder of this installation's state; it need not exist."""
    return Path(text(NNI_HOME, _DEFAULT_HOME)).expanduser()


def current() -> dict[str, str]:
    """Return a copy of the environment without secrets, for child processes of the installation."""
    return {name: value for name, value in os.environ.items() if name not in SECRET_VARIABLES}


def replace(variables: Mapping[str, str]) -> None:
    """Replace the environment of this process, a fork that becomes another program."""
    os.environ.clear()
    os.environ.update(variables)


def secrets() -> dict[str, str]:
    """Return the secrets of this process, for child processes that are services."""
    present = {name: os.environ[name] for name in SECRET_VARIABLES if os.environ.get(name)}
    return present | _secrets


def for_user_code() -> dict[str, str]:
    """Return a copy of the environment without the variables of services, for user code."""
    return {name: value for name, value in os.environ.items() if name not in _SERVICE_VARIABLES}
