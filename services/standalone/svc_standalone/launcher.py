"""Start and stop of the supervisor from another process."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

from nni_wire.limits import START_WAIT_S
from svc_common import environment
from svc_common.entry_point import memory_file
from svc_common.errors import FailedPreconditionError, UnavailableError
from svc_standalone.endpoint import SUPERVISOR_LOCK, Endpoint, Lock, read_endpoint
from svc_standalone.settings import NNI_HTTP_PORT


def up(home: Path, http_port: int = 0) -> Endpoint:
    """Start the supervisor in the background unless one runs; wait and return its endpoint.

    Args:
        home: folder of the installation's state.
        http_port: port of page and REST; 0: a free one. Ignored if the services are up already.

    Raises:
        FailedPreconditionError: the services do not start; the message says why.
        UnavailableError: the services are not ready in time.
    """
    endpoint = read_endpoint(home)
    if endpoint is not None:
        return endpoint
    reader, writer = os.pipe()
    secrets = memory_file(environment.secrets())
    try:
        subprocess.run(
            (sys.executable, "-P", "-m", "svc_standalone", "run", "--detach"),
            env={
                **environment.current(),
                environment.NNI_HOME: str(home),
                environment.NNI_READY_FD: str(writer),
                environment.NNI_SECRETS_FD: str(secrets),
                NNI_HTTP_PORT: str(http_port),
            },
            pass_fds=(writer, secrets),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            check=False,
        )
        os.close(writer)
        line = _read_line(reader)
    finally:
        os.close(secrets)
        os.close(reader)
    facts = json.loads(line or "{}")
    endpoint = read_endpoint(home)
    if endpoint is None:
        reason = facts.get("error") or "its supervisor ended"
        raise FailedPreconditionError(f"the services do not start: {reason}")
    return endpoint


def down(home: Path) -> bool:
    """Send TERM to the supervisor and wait for its end, without limit; return False if none ran."""
    endpoint = read_endpoint(home)
    if endpoint is None:
        return False
    try:
        os.kill(endpoint.pid, signal.SIGTERM)
    except ProcessLookupError:
        return False
    Lock.take(home / SUPERVISOR_LOCK).release()  # free when the supervisor has ended
    return True


def _read_line(reader: int) -> str:
    line = b""
    while b"\n" not in line:
        readable, _, _ = select.select([reader], [], [], START_WAIT_S)
        if not readable:
            raise UnavailableError("the services are not ready in time; see the folder log")
        data = os.read(reader, 65536)
        if not data:
            break
        line += data
    return line.decode(errors="replace").partition("\n")[0]
