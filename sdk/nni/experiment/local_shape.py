"""Discovery, start and stop of the services of this machine.

They are one supervisor process with its children. It has no terminal and runs until
`stop_local_shape`.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import select
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

from nni.experiment.endpoint import Endpoint, endpoint_path, read_endpoint
from nni.experiment.environment import nni_home, supervisor_environment
from nni.experiment.errors import (
    ExperimentError,
    RefusedError,
    ServiceFailedError,
    UnreachableError,
)
from nni_wire.limits import START_LIMIT_S, START_SILENCE_LIMIT_S, START_WAIT_S

_logger = logging.getLogger(__name__)

SUPERVISOR_MODULE: Final = "svc_standalone"
_STOP_TIMEOUT_S: Final = 30.0
_LOG_TAIL_LINES: Final = 15
_READ_BYTES: Final = 65536


def running_endpoint() -> Endpoint:
    """Return the endpoint of the local services; raise UnreachableError if none is up.

    Raises:
        UnreachableError: they are not up.
    """
    endpoint = read_endpoint()
    if endpoint is None:
        raise UnreachableError(
            "no services are up, so no experiment is running; "
            "start an experiment with: nnictl create --config FILE"
        )
    return endpoint


def recovered_endpoint() -> Endpoint | None:
    """Return the endpoint; restart services that were killed; None after an orderly end.

    Services whose supervisor was killed are brought up again, and go on with what they ran.

    Raises:
        ExperimentError: they cannot be brought up.
    """
    endpoint = read_endpoint()
    # The supervisor removes the file when it ends in order.
    if endpoint is None and endpoint_path().exists():
        return ensure_local_shape()
    return endpoint


def ensure_local_shape(
    http_port: int = 0, *, private: bool | None = None, durability: str = ""
) -> Endpoint:
    """Return the addresses of the local services; start the services if they do not run.

    Two processes that do this at once get the same services: the supervisor that comes second
    tells the endpoint of the first.

    Args:
        http_port: port of page and REST, if they are to be brought up; 0: a free one.
        private: whether reading over REST needs the token, if they are to be brought up; `None`: as
            NNI_PRIVATE says, else where other people can log in to this machine.
        durability: what the state of experiments survives, if they are to be brought up:
            `process` or `power`; empty: as NNI_DURABILITY says, else `power`.

    Raises:
        RefusedError: the package of the local services is not installed, or they say why they
            cannot start.
        ServiceFailedError: they do not come up; repeats the end of the supervisor's log.
    """
    endpoint = read_endpoint()
    if endpoint is not None:
        return endpoint
    return _start(http_port, private=private, durability=durability)


def reading_needs_token(endpoint: Endpoint) -> bool:
    """Return whether the services, if they answer, refuse to be read without a token."""
    from nni.experiment.rest import get_json  # most commands do without HTTP

    try:
        get_json(f"{endpoint.http}/api/v1/nni/version")
    except ServiceFailedError:
        return True
    except UnreachableError:
        return False
    return False


def _start(http_port: int, *, private: bool | None, durability: str) -> Endpoint:
    if find_spec(SUPERVISOR_MODULE) is None:
        raise RefusedError(
            "the services of this machine are not installed; "
            "install them with: pip install 'nni[local]'"
        )
    # -P: a file of the working directory must never be imported in place of a package.
    command = [sys.executable, "-P", "-m", SUPERVISOR_MODULE, "run", "--detach"]
    output_path = supervisor_log().with_suffix(".out")
    read_fd, write_fd = os.pipe()
    with os.fdopen(read_fd, "rb", buffering=0) as ready, _opened(output_path) as output:
        try:
            subprocess.run(
                [*command, "--port", str(http_port)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=supervisor_environment(write_fd, private=private, durability=durability),
                pass_fds=(write_fd,),
                start_new_session=True,
                check=False,
            )
        finally:
            os.close(write_fd)
        line = _ready_line(ready.fileno())
    endpoint = read_endpoint()
    if endpoint is None:
        raise _start_error(line, output_path)
    return endpoint


def _opened(output: Path) -> IO[bytes]:
    """Return the supervisor's output file, opened in private folders; `/dev/null` if that fails.

    The supervisor repairs its folders, and says why it cannot start.
    """
    try:
        # One by one: `parents=True` would let every user read the parents.
        for folder in (nni_home(), output.parent):
            folder.parent.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700, exist_ok=True)
        return output.open("wb")
    except OSError:
        return Path(os.devnull).open("wb")


def check_local(endpoint: Endpoint | None) -> None:
    """Raise RefusedError if the services run on another machine.

    Raises:
        RefusedError: they are.
    """
    if endpoint is not None and endpoint.remote is not None:
        raise RefusedError(
            f"NNI_ENDPOINT names the services at {endpoint.http}; they are started and ended "
            "there. Unset it to mean those of this machine"
        )


def supervisor_log() -> Path:
    """Return the path of the supervisor's log in NNI_HOME; it need not exist."""
    return nni_home() / "log" / "supervisor.log"


def _ready_line(
    fd: int, *, slow_s: float = START_SILENCE_LIMIT_S, limit_s: float = START_WAIT_S
) -> bytes:
    """Return what the supervisor wrote until its first newline, its end, or the time limit.

    A start that is slow, while the children make progress, is logged once as a warning.
    """
    started_s = time.monotonic()
    deadlines = [started_s + slow_s, started_s + limit_s]
    line = b""
    while b"\n" not in line:
        timeout_s = max(0.0, deadlines[0] - time.monotonic())
        readable, _, _ = select.select([fd], [], [], timeout_s)
        if not readable and len(deadlines) > 1:
            del deadlines[0]
            _logger.warning(
                "the services are starting for %g s, since this machine is busy; they get up to "
                "%g s while they make progress; see %s",
                *(slow_s, START_LIMIT_S, supervisor_log()),
            )
            continue
        piece = os.read(fd, _READ_BYTES) if readable else b""
        if not piece:
            break
        line += piece
    return line


def _start_error(line: bytes, output: Path) -> ExperimentError:
    with contextlib.suppress(ValueError, KeyError, TypeError):
        return RefusedError(f"the services do not start: {json.loads(line)['error']}")
    try:
        tail = output.read_text("utf-8", "replace").splitlines()[-_LOG_TAIL_LINES:]
    except OSError:
        tail = []
    head = f"the services did not come up; see {supervisor_log()}"
    return ServiceFailedError("\n  ".join([head, *tail]))


def stop_local_shape(limit_s: float = _STOP_TIMEOUT_S) -> bool:
    """End the services, after experiments were stopped; return whether they were up.

    Args:
        limit_s: for the end of their supervisor.

    Raises:
        ServiceFailedError: they do not end.
    """
    endpoint = read_endpoint()
    if endpoint is None:
        return False
    check_local(endpoint)
    if not end_process(endpoint.supervisor_pid, limit_s):
        raise ServiceFailedError(
            f"the supervisor (pid {endpoint.supervisor_pid}) did not end within {limit_s:g} s; see "
            f"{supervisor_log()}. If it hangs, end it and all services with: "
            f"kill -9 {endpoint.supervisor_pid}; no result is lost"
        )
    return True


def end_process(pid: int, timeout_s: float) -> bool:
    """Send SIGTERM and wait up to `timeout_s`; return whether the process has ended.

    An ended process counts as ended while its parent has not reaped it: in a container the first
    process, which inherits orphans, often reaps none.

    Args:
        pid: of the process; one that does not exist has ended.
        timeout_s: limit of the wait.
    """
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(descriptor, signal.SIGTERM)
        ends = select.poll()
        ends.register(descriptor, select.POLLIN)
        return bool(ends.poll(timeout_s * 1000))
    finally:
        os.close(descriptor)
