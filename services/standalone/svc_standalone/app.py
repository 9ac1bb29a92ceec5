"""The supervisor as a process: take the lock, start everything, say so, wait, stop."""

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final

from svc_common.clock import SystemClock
from svc_common.errors import FailedPreconditionError, ServiceError
from svc_common.lifecycle import announce_failure, announce_ready
from svc_common.logs import configure, get_logger
from svc_common.tasks import StoppedError, result_unless
from svc_standalone.commands import (
    BUS,
    LOOPBACK,
    SERVICES,
    Plan,
    Ports,
    bus_command,
    service_command,
)
from svc_standalone.endpoint import (
    ENDPOINT_FILE,
    STARTING_LOCK,
    SUPERVISOR_LOCK,
    Endpoint,
    Lock,
    read_endpoint,
    write_endpoint,
)
from svc_standalone.settings import Settings
from svc_standalone.supervisor import Supervisor

LOG_FILE: Final = "supervisor.log"
_FIRST_PORT: Final = 20_000
_LAST_PORT: Final = 32_767
"""Last port that Linux does not give to outgoing connections (`ip_local_port_range`)."""
_PORT_TRIES: Final = 100


def run(settings: Settings) -> int:
    """Be the supervisor of this installation until TERM; give the exit code.

    If there is one already, tell the caller its endpoint and return. Readiness, or why there is
    none (`{"error": …}`), is told on `NNI_READY_FD`.
    """
    try:
        settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
        settings.logs.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        return _refuse(f"cannot use {settings.home}: {error.strerror}; set NNI_HOME")
    with ExitStack() as held:
        log = held.enter_context((settings.logs / LOG_FILE).open("a", encoding="utf-8"))
        configure("supervisor", stream=log)
        starting = Lock.take(settings.home / STARTING_LOCK)
        held.callback(starting.release)
        supervisor_lock = Lock.try_take(settings.home / SUPERVISOR_LOCK)
        if supervisor_lock is None:
            endpoint = read_endpoint(settings.home)
            if endpoint is not None:
                announce_ready(_public(endpoint))
                return 0
            supervisor_lock = Lock.take(settings.home / SUPERVISOR_LOCK)  # that one is stopping
        held.callback(supervisor_lock.release)
        (settings.home / ENDPOINT_FILE).unlink(missing_ok=True)
        try:
            asyncio.run(_supervise(settings, starting))
        except ServiceError as error:
            get_logger().error("start failed", error=error.message)
            return _refuse(error.message)
        except OSError as error:
            get_logger().error("start failed", exc_info=error)
            return _refuse(f"cannot start: {error}")
    return 0


async def _supervise(settings: Settings, starting: Lock) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    # The terminal that started us may go; the services stay.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    plan = make_plan(settings)
    commands = {BUS: bus_command(plan)} | {name: service_command(plan, name) for name in SERVICES}
    supervisor = Supervisor(settings, SystemClock(), commands)
    try:
        endpoint = _endpoint(plan, await result_unless(stopping.wait(), supervisor.start()))
        write_endpoint(settings.home, endpoint)
        starting.release()
        announce_ready(_public(endpoint))
        get_logger().info("local shape up", **supervisor.pids())
        await stopping.wait()
    except StoppedError:
        get_logger().info("stopped before all children were ready")
    finally:
        (settings.home / ENDPOINT_FILE).unlink(missing_ok=True)
        await supervisor.stop()
        get_logger().info("local shape down")


def make_plan(settings: Settings) -> Plan:
    """Choose ports and a token for one life of the local shape.

    Raises:
        FailedPreconditionError: the port of the settings is taken.
    """
    nats, dispatcher, grpc, http = free_ports(3, settings.http_port)
    return Plan(
        home=settings.home,
        ports=Ports(nats, dispatcher, grpc, http),
        version=installed_version(),
        token=secrets.token_urlsafe(32),
    )


def free_ports(count: int, fixed: int) -> list[int]:
    """Give `count` free ports on loopback, and `fixed` (or one more free one) as the last.

    Raises:
        FailedPreconditionError: `fixed` is taken, or no port is free.
    """
    with ExitStack() as held:
        # All are held at once, so that they differ.
        ports = [_hold_port(held, 0) for _ in range(count)]
        return [*ports, _hold_port(held, fixed)]


def _hold_port(held: ExitStack, wanted: int) -> int:
    """Bind a port as long as `held` is open: `wanted`, or a free one for 0.

    Free ones lie below those that the kernel gives to outgoing connections. From among those, a
    client that looks for a bus that is down could connect to itself (TCP allows it) and so take
    the very port that the bus is to come back on.
    """
    candidates = (wanted,) if wanted else (_random_port() for _ in range(_PORT_TRIES))
    for port in candidates:
        probe = held.enter_context(socket.socket())
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError as error:
            reason = error.strerror
        else:
            return port
    if wanted:
        raise FailedPreconditionError(
            f"port {wanted} cannot be used: {reason}; choose another with --port"
        )
    raise FailedPreconditionError(f"no free port found on {LOOPBACK}: {reason}")


def _random_port() -> int:
    return _FIRST_PORT + secrets.randbelow(_LAST_PORT - _FIRST_PORT + 1)


def installed_version() -> str:
    """Give the version that all distributions of this installation have."""
    try:
        return version("nni-standalone")
    except PackageNotFoundError:
        return "unknown"


def remove_stale(home: Path) -> None:
    """Remove what a killed supervisor left, for commands that look at the file only."""
    if read_endpoint(home) is None:
        (home / ENDPOINT_FILE).unlink(missing_ok=True)


def _endpoint(plan: Plan, facts: Mapping[str, Mapping[str, str]]) -> Endpoint:
    manager = facts["manager"]
    http = manager.get("http", f"{LOOPBACK}:{plan.ports.manager_http}")
    return Endpoint(
        version=plan.version,
        pid=os.getpid(),
        started_at=datetime.now(UTC).isoformat(),
        http=http if "://" in http else f"http://{http}",
        grpc=manager.get("grpc", f"{LOOPBACK}:{plan.ports.manager_grpc}"),
        nats=plan.nats_url,
        token=plan.token,
    )


def _public(endpoint: Endpoint) -> dict[str, str]:
    """Give the facts of readiness; the token stays in the file."""
    fields = endpoint.as_json()
    del fields["token"]
    return {name: str(value) for name, value in fields.items()}


def _refuse(message: str) -> int:
    announce_failure(message)
    return 1
