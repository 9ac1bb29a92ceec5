"""Addresses of this installation's services, read from `endpoint.json`."""

from __future__ import annotations

import json
import os
import pwd
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import psutil

from nni.experiment.environment import ANSWER_S, RemoteSettings, nni_home, remote_settings
from nni.experiment.errors import RefusedError

ENDPOINT_FILE: Final = "endpoint.json"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Addresses, version and supervisor of the running services, as in `endpoint.json`."""

    version: str
    supervisor_pid: int
    """Process id of the supervisor of the services; 0: they run on another machine."""
    started_at: str
    """Start time of the supervisor, ISO 8601; empty if unknown."""
    http: str
    """Base address of the page and REST, e.g. `http://127.0.0.1:41234`."""
    grpc: str
    """`host:port` of the manager."""
    nats: str
    """Address of the message bus; empty for services of another machine."""
    token: str = field(repr=False)
    remote: RemoteSettings | None = None
    """Address and credentials of services on another machine; `None`: they run on this one."""


def endpoint_path() -> Path:
    """Return where `endpoint.json` is, if the services are up."""
    return nni_home() / ENDPOINT_FILE


def read_endpoint(timeout_s: float = ANSWER_S) -> Endpoint | None:
    """Return the endpoint of remote services if some are named, else of local ones; None if down.

    A file left behind by a supervisor that is dead counts as none. Services of another machine
    that `NNI_ENDPOINT` names go before those of this one.

    Args:
        timeout_s: for each answer of services on another machine.

    Raises:
        RefusedError: NNI_HOME is no folder of this user.
        ExperimentError: the services that it names cannot be used.
    """
    try:
        remote = remote_settings()
    except OSError as error:
        raise RefusedError(f"NNI_TOKEN_FILE cannot be read: {error}") from error
    if remote is not None:
        return remote_services_endpoint(remote, timeout_s)
    try:
        with open(endpoint_path(), "rb", opener=_open_at_once) as file:
            content = file.read()
    except FileNotFoundError:
        return None
    except OSError as error:
        if _is_own(endpoint_path()):  # the supervisor sets it aside, or makes it readable
            return None
        raise _unusable_home(error) from error
    endpoint = _parse(content)
    if endpoint is None or not is_supervisor(endpoint.supervisor_pid):
        return None
    return endpoint


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; a pipe in its place does not make its reader wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def _is_own(path: Path) -> bool:
    """Return whether the entry at a path is there and belongs to this user."""
    try:
        return path.lstat().st_uid == os.geteuid()
    except OSError:
        return False


def _unusable_home(error: OSError) -> RefusedError:
    """Return the error about a state folder that cannot be read, as that of another user."""
    home = nni_home()
    try:
        owner = home.stat().st_uid
    except OSError:
        owner = os.geteuid()
    whose = "" if owner == os.geteuid() else f", which belongs to the user {_user_name(owner)}"
    return RefusedError(
        f"NNI_HOME must be a folder that you may read and write, got {str(home)!r}{whose} "
        f"({error.strerror}); set it to another folder, or unset it",
        {"field": "NNI_HOME", "value": str(home)},
    )


def _user_name(user_id: int) -> str:
    try:
        return pwd.getpwuid(user_id).pw_name
    except KeyError:
        return str(user_id)


def remote_services_endpoint(settings: RemoteSettings, timeout_s: float = ANSWER_S) -> Endpoint:
    """Check remote services, ask them for version and addresses, and return their endpoint.

    Raises:
        ExperimentError: they cannot be used.
    """
    # Here, since HTTP and TLS take long to import and services of this machine need neither.
    from nni.experiment.remote_services import remote_endpoint

    found = remote_endpoint(settings, timeout_s)
    return Endpoint(
        version=found.version,
        supervisor_pid=0,
        started_at="",
        http=found.http,
        grpc=found.grpc,
        nats="",
        token=settings.token,
        remote=settings,
    )


def _parse(content: bytes) -> Endpoint | None:
    try:
        fields = json.loads(content)
        return Endpoint(
            version=str(fields.get("version", "")),
            supervisor_pid=int(fields["pid"]),
            started_at=str(fields.get("started_at", "")),
            http=str(fields["http"]),
            grpc=str(fields["grpc"]),
            nats=str(fields.get("nats", "")),
            token=str(fields["token"]),
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def is_supervisor(pid: int) -> bool:
    """Return whether the process ``pid`` is alive and a supervisor; pids are used again."""
    try:
        process = psutil.Process(pid)
        return process.status() != psutil.STATUS_ZOMBIE and any(
            "svc_standalone" in argument for argument in process.cmdline()
        )
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
