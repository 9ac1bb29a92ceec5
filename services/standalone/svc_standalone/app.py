"""Process of the supervisor: take the lock, start the children, report readiness, wait, stop."""

import asyncio
import os
import secrets
import signal
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import asdict, replace
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Final

from nni_wire.folders import AGENTS_ACCESS_FILE, BUS_FOLDER
from svc_common import environment
from svc_common.agent_users import USERS_FILE, AgentUsers
from svc_common.clock import SystemClock
from svc_common.credential_channel import CredentialServer
from svc_common.errors import ServiceError
from svc_common.inspection import forbid_inspection
from svc_common.kept_listeners import ListenerKeeper
from svc_common.logs import configure, get_logger
from svc_common.messaging.permissions import FLEET, BusUser
from svc_common.own_files import place_for_file, place_for_log, private_folder
from svc_common.readiness import announce_failure, announce_ready
from svc_common.subjects import COMPRESSOR, NAS
from svc_common.tasks import StoppedError, TaskOwner, result_unless
from svc_standalone.children import Command
from svc_standalone.commands import (
    BUS,
    BUS_CONFIGURATION,
    LOOPBACK,
    SERVICES,
    Plan,
    Ports,
    bus_command,
    service_command,
    write_bus_config,
)
from svc_standalone.consumer_states import set_damaged_states_aside
from svc_standalone.credential_handler import CredentialHandler
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
from svc_standalone.fleet_demand import FleetDemand
from svc_standalone.fork_server import ForkServer
from svc_standalone.held_ports import HeldPorts
from svc_standalone.settings import Settings
from svc_standalone.supervisor import Supervisor

if TYPE_CHECKING:
    from svc_common.messaging.nats_settings import NatsSettings

LOG_FILE: Final = "supervisor.log"


def run(settings: Settings, forks: ForkServer | None = None) -> int:
    """Run the supervisor until SIGTERM; if one runs already, report its endpoint; return exit code.

    Readiness, or the reason of a failure (`{"error": …}`), is written to `NNI_READY_FD`.

    Args:
        settings: of the supervisor.
        forks: server that forks the services of the first start; None: they are programs.
    """
    forbid_inspection()
    environment.load_secrets()
    try:
        prepare_home(settings)
    except OSError as error:
        return _refuse(_unusable(settings, error))
    try:
        with ExitStack() as resources:
            return _run_alone(settings, resources, forks)
    except OSError as error:  # of the log or a lock: a disk that fails, a file system without locks
        return _refuse(_unusable(settings, error))


def _unusable(settings: Settings, error: OSError) -> str:
    """Return which place of the installation cannot be used, and why."""
    return f"cannot use {error.filename or settings.home}: {error.strerror}; set NNI_HOME"


def _run_alone(settings: Settings, resources: ExitStack, forks: ForkServer | None) -> int:
    """Lock, run the supervisor until SIGTERM; if one runs, report its endpoint; return exit code.

    Raises:
        OSError: the log or a lock cannot be opened.
    """
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
        asyncio.run(_supervise(settings, starting, forks))
    except ServiceError as error:
        get_logger().error("start failed", error=error.message)
        return _refuse(error.message)
    except OSError as error:
        get_logger().error("start failed", exc_info=error)
        return _refuse(f"cannot start: {error}")
    return 0


def prepare_home(settings: Settings) -> None:
    """Create the installation's private folders; rename any folder at the path of one of its files.

    Raises:
        OSError: a folder cannot be created.
    """
    # The user chose this place: what stands there is not ours to rename.
    settings.home.mkdir(mode=0o700, parents=True, exist_ok=True)
    for folder in (settings.home, settings.logs, settings.home / BUS_FOLDER):
        private_folder(folder)
    for name in (
        *(ENDPOINT_FILE, BUS_CONFIGURATION, SUPERVISOR_LOCK, STARTING_LOCK),
        *(USERS_FILE, AGENTS_ACCESS_FILE),
    ):
        place_for_file(settings.home / name)
    place_for_log(settings.logs / LOG_FILE)


async def _supervise(settings: Settings, starting: Lock, forks: ForkServer | None) -> None:
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    # The services outlive the terminal that started them.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    held = HeldPorts.draw(settings.http_port)
    kept, credentials, demand = ListenerKeeper(), CredentialServer(), FleetDemand()
    users = AgentUsers(settings.home)
    plan = make_plan(settings, held.numbers)
    get_logger().info("ports held", **asdict(held.numbers))
    port = BusPort(
        held, plan, users.logins, kept.child_end, credentials.child_end, demand.child_end
    )
    demands = {
        COMPRESSOR: held.compressor.wait_for_client,
        NAS: held.nas.wait_for_client,
        FLEET: demand.wait,
    }
    supervisor = Supervisor(settings, SystemClock(), port.commands(), port, demands, forks)
    handler = CredentialHandler(
        users, port.write_bus_config, supervisor.reload_bus, port.bus_settings
    )
    tasks = TaskOwner(
        lambda name, error: get_logger().error("task failed", task=name, exc_info=error)
    )
    tasks.start(credentials.serve(handler.handle), "credentials of agents")
    try:
        facts = await result_unless(stopping.wait(), supervisor.start())
        endpoint = _endpoint(port.plan, facts)
        write_endpoint(settings.home, endpoint)
        port.on_redrawn(lambda nats: write_endpoint(settings.home, replace(endpoint, nats=nats)))
        starting.release()
        announce_ready(_public(endpoint))
        get_logger().info("local shape up", **supervisor.pids())
        await stopping.wait()
    except StoppedError:
        get_logger().info("stopped before all children were ready")
    finally:
        remove_endpoint(settings.home)
        await tasks.aclose()
        await supervisor.stop()
        held.close()
        kept.close()
        credentials.close()
        demand.close()
        get_logger().info("local shape down")


class BusPort:
    """TCP port reserved for nats-server: shared with each server process, replaced if it is taken.

    Args:
        held: ports of this run.
        plan: of this run.
        agents: returns the users of the bus that are agents of the fleet, with their passwords.
        listeners: socket over which the manager has the ports of experiments kept; None: none.
        credentials: socket over which the fleet gets credentials of agents; None: none.
        demand: socket over which the manager asks for the fleet; None: none.
    """

    def __init__(
        self,
        held: HeldPorts,
        plan: Plan,
        agents: Callable[[], Iterable[tuple[BusUser, str]]] = tuple,
        listeners: socket.socket | None = None,
        credentials: socket.socket | None = None,
        demand: socket.socket | None = None,
    ) -> None:
        self._held = held
        self._agents = agents
        self._listeners = listeners
        self._credentials = credentials
        self._demand = demand
        self.plan = plan
        self._redrawn: Callable[[str], None] = lambda _: None

    def commands(self) -> dict[str, Command]:
        """Write the bus's configuration file; return start commands of bus and services by name."""
        services = {
            name: service_command(
                self.plan,
                name,
                self._held.http,
                self._listeners,
                self._credentials,
                self._demand,
            )
            for name in SERVICES
        }
        return {BUS: bus_command(self.plan, self._agents()), **services}

    def write_bus_config(self) -> None:
        """Write the configuration file of the bus, with the current users and passwords.

        Raises:
            OSError: it cannot be written.
        """
        write_bus_config(self.plan, self._agents())

    def bus_settings(self) -> "NatsSettings":
        """Return this process's settings for the bus: current address and owner, no user."""
        from svc_common.messaging.nats_settings import NatsSettings

        return NatsSettings(self.plan.nats_url, owner=os.geteuid())

    def on_redrawn(self, call: Callable[[str], None]) -> None:
        """Register a callback for changes of the bus's address, called with the new one."""
        self._redrawn = call

    def lend(self) -> None:
        """Let the next bus process bind the held port; rename damaged consumer states before."""
        set_damaged_states_aside(self.plan.home / BUS_FOLDER)
        self._held.lend_nats()

    def take_back(self) -> Mapping[str, Command] | None:
        """Make the bus's port exclusive; if it is taken, choose another and return new commands."""
        if self._held.take_nats_back():
            return None
        get_logger().error("port of the bus taken by another program", port=self.plan.ports.nats)
        self._held.redraw_nats()
        self.plan = replace(self.plan, ports=self._held.numbers)
        self._redrawn(self.plan.nats_url)
        return self.commands()


def make_plan(settings: Settings, ports: Ports) -> Plan:
    """Build the plan of one run: folder, ports, version, durability and a new random token."""
    return Plan(
        home=settings.home,
        ports=ports,
        version=installed_version(),
        token=secrets.token_urlsafe(32),
        durability=settings.durability,
    )


def installed_version() -> str:
    """Return the version of the installed distribution `nni-standalone`; `unknown` without it."""
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
    """Return the endpoint's fields for the readiness report, without the token."""
    fields = endpoint.as_json()
    del fields["token"]
    return {name: str(value) for name, value in fields.items()}


def _refuse(message: str) -> int:
    announce_failure(message)
    return 1
