"""Process of the supervisor: take the lock, start the children, report readiness, wait, stop."""

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from svc_common.clock import SystemClock
from svc_common.errors import FailedPreconditionError, ServiceError
from svc_common.lifecycle import announce_failure, announce_ready
from svc_common.logs import configure, get_logger
from svc_common.storage.own_files import place_for_file, private_folder
from svc_common.tasks import StoppedError, result_unless
from svc_standalone.commands import (
    BUS,
    BUS_CONFIGURATION,
    BUS_FOLDER,
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
    remove_endpoint,
    write_endpoint,
)
from svc_standalone.settings import Settings
from svc_standalone.supervisor import Supervisor

LOG_FILE: Final = "supervisor.log"
_FIRST_PORT: Final = 20_000
_LAST_PORT: Final = 32_767
"""Last port below the range that Linux uses for outgoing connections (`ip_local_port_range`)."""
_PORT_TRIES: Final = 100


def run(settings: Settings) -> int:
    """Run the supervisor of this installation until TERM; return the exit code.

    If one is running already, report its endpoint and return. Readiness, or the reason of a failure
    (`{"error": …}`), is written to `NNI_READY_FD`.
    """
    try:
        prepare_home(settings)
    except OSError as error:
        return _refuse(f"cannot use {settings.home}: {error.strerror}; set NNI_HOME")
    with ExitStack() as resources:
        log = resources.enter_context((settings.logs / LOG_FILE).open("a", encoding="utf-8"))
        configure("supervisor", stream=log)
        starting = Lock.take(settings.home / STARTING_LOCK)
        resources.callback(starting.release)
        supervisor_lock = Lock.try_take(settings.home / SUPERVISOR_LOCK)
        if supervisor_lock is None:
            endpoint = read_endpoint(settings.home)
            if endpoint is not None:
                announce_ready(_public(endpoint))
                return 0
            supervisor_lock = Lock.take(
                settings.home / SUPERVISOR_LOCK
            )  # the other supervisor is stopping
        resources.callback(supervisor_lock.release)
        remove_endpoint(settings.home)
        try:
            asyncio.run(_supervise(settings, starting))
        except ServiceError as error:
            get_logger().error("start failed", error=error.message)
            return _refuse(error.message)
        except OSError as error:
            get_logger().error("start failed", exc_info=error)
            return _refuse(f"cannot start: {error}")
    return 0


def prepare_home(settings: Settings) -> None:
    """Create the private folders of the installation; set aside what stands in their places.

    Raises:
        OSError: a folder cannot be created.
    """
    # The user chose this place: what stands there is not ours to rename.
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (settings.home, settings.logs, settings.home / BUS_FOLDER):
        private_folder(folder)
    for name in (ENDPOINT_FILE, BUS_CONFIGURATION, SUPERVISOR_LOCK, STARTING_LOCK):
        place_for_file(settings.home / name)
    place_for_file(settings.logs / LOG_FILE)


async def _supervise(settings: Settings, starting: Lock) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    # The services outlive the terminal that started them.
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
        remove_endpoint(settings.home)
        await supervisor.stop()
        get_logger().info("local shape down")


def make_plan(settings: Settings) -> Plan:
    """Return ports and a token for one run of the local shape.

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
    """Return `count` free ports on loopback, followed by `fixed` (0: one more free port).

    Raises:
        FailedPreconditionError: `fixed` is taken, or no port is free.
    """
    with ExitStack() as resources:
        # All are bound at once, so that they differ.
        ports = [_bind_port(resources, 0) for _ in range(count)]
        return [*ports, _bind_port(resources, fixed)]


def _bind_port(resources: ExitStack, wanted: int) -> int:
    """Bind and return a port until `resources` are closed: `wanted`, or a free one for 0.

    Free ports are chosen below the kernel's range for outgoing connections. Within that range, a
    client that tries to reach a stopped bus could connect to itself (TCP allows it) and so occupy
    the port that the bus needs when it restarts.
    """
    candidates = (wanted,) if wanted else (_random_port() for _ in range(_PORT_TRIES))
    for port in candidates:
        probe = resources.enter_context(socket.socket())
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
    """Return the version of all installed distributions of NNI."""
    try:
        return version("nni-standalone")
    except PackageNotFoundError:
        return "unknown"


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
    """Return the fields of readiness, which exclude the token."""
    fields = endpoint.as_json()
    del fields["token"]
    return {name: str(value) for name, value in fields.items()}


def _refuse(message: str) -> int:
    announce_failure(message)
    return 1
