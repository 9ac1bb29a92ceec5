"""Endpoint file of an installation (`endpoint.json`), and the locks of its supervisor."""

import errno
import fcntl
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

from svc_common.durable_files import write_private
from svc_common.logs import get_logger

ENDPOINT_FILE: Final = "endpoint.json"
SUPERVISOR_LOCK: Final = "supervisor.lock"
"""Held while a supervisor runs."""
STARTING_LOCK: Final = "starting.lock"
"""Held while a supervisor starts: after it, the services are up, or the next one may start."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Addresses, process id and token of the running services, as in `endpoint.json`."""

    version: str
    pid: int
    """Process id of the supervisor."""
    started_at: str
    """Time of its start, ISO 8601, UTC."""
    http: str
    """Base address of page and REST."""
    grpc: str
    """`host:port` of the manager."""
    nats: str
    """Address of the bus, without the token."""
    token: str = field(repr=False)

    def as_json(self) -> dict[str, object]:
        """Return the content of the file."""
        return {name: getattr(self, name) for name in self.__slots__}


def write_endpoint(home: Path, endpoint: Endpoint) -> None:
    """Write `endpoint.json` atomically, with mode 0600."""
    write_private(home / ENDPOINT_FILE, json.dumps(endpoint.as_json()))


def remove_endpoint(home: Path) -> None:
    """Delete `endpoint.json`; a failure is only logged, since readers check the lock, too."""
    try:
        (home / ENDPOINT_FILE).unlink(missing_ok=True)
    except OSError as error:  # the file system is read-only
        get_logger().warning("endpoint not removed", error=str(error))


def read_endpoint(home: Path) -> Endpoint | None:
    """Read `endpoint.json`; None: it is missing, damaged, or the supervisor's lock is free."""
    try:
        with open(home / ENDPOINT_FILE, "rb", opener=_open_at_once) as file:
            fields = json.loads(file.read())
        endpoint = parse_endpoint(fields)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    lock = Lock.try_take(home / SUPERVISOR_LOCK)
    if lock is not None:
        lock.release()
        return None  # the supervisor was killed
    return endpoint


def _open_at_once(path: str, flags: int) -> int:
    """Open a file; a pipe in its place does not make its reader wait for a writer."""
    return os.open(path, flags | os.O_NONBLOCK)


def parse_endpoint(fields: Mapping[str, object]) -> Endpoint:
    """Build an endpoint from the JSON fields of its file; raise if one is missing.

    Raises:
        KeyError: a field is missing.
        ValueError: the process id is no number.
    """
    return Endpoint(
        version=str(fields["version"]),
        pid=int(str(fields["pid"])),
        started_at=str(fields["started_at"]),
        http=str(fields["http"]),
        grpc=str(fields["grpc"]),
        nats=str(fields["nats"]),
        token=str(fields["token"]),
    )


class Lock:
    """Exclusive advisory lock on a file (`flock`), held until `release` or the process's end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def take(cls, path: Path) -> Self:
        """Open a lock file and wait until its lock is free; return it held."""
        descriptor = _open_lock(path)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return cls(descriptor)

    @classmethod
    def try_take(cls, path: Path) -> Self | None:
        """Try to lock a file without waiting; return the lock; None: another process holds it."""
        descriptor = _open_lock(path)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return cls(descriptor)

    def release(self) -> None:
        """Release the lock; may be called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _open_lock(path: Path) -> int:
    """Open or create a lock's file, return the descriptor; read-only on a read-only disk."""
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC)
