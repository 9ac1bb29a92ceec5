"""Parts of the agent that depend on who has started it: its installation, or a fleet elsewhere."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from svc_common import environment
from svc_common.clock import Clock
from svc_common.errors import UnavailableError
from svc_common.lifecycle import Service
from svc_common.logs import get_logger
from svc_common.messaging.nats_settings import NatsSettings
from svc_common.messaging.ports import Bus
from svc_trial_runner.adapters.agent_folder import trial_sdk_folder
from svc_trial_runner.adapters.agent_home import AgentHome
from svc_trial_runner.adapters.environments import FileEnvironments
from svc_trial_runner.adapters.forwarded_sockets import ForwardedSockets
from svc_trial_runner.adapters.login_environment import (
    LoginEnvironments,
    own_roots,
    without_bundle,
)
from svc_trial_runner.adapters.mounted_storage import MountedStorage
from svc_trial_runner.adapters.trial_api import warm_file, write_trial_api
from svc_trial_runner.agent.agent import Agent
from svc_trial_runner.agent.silence import (
    REFUSED_EXIT_CODE,
    REFUSED_LIMIT_S,
    SILENCE_EXIT_CODE,
    wait_silent,
)
from svc_trial_runner.agent_settings import AgentSettings, ConnectionKind
from svc_trial_runner.domain.gpus import (
    NO_MACHINE_RULES,
    MachineGpuRules,
    parse_visible_devices,
)
from svc_trial_runner.enrolment import JOINED
from svc_trial_runner.ports import Environments
from svc_trial_runner.settings import Settings

AGENT_FOLDER_VARIABLE: Final = "NNI_AGENT_FOLDER"
"""Variable that marks the processes of an agent, all of which its supervisor kills at the end."""
_TRIAL_API: Final = "api"
"""Folder of the trial API in the folder of work."""


def open_home(service: Service, settings: Settings) -> None:
    """Lock the home of a fleet's agent, else do nothing; released, perhaps removed, at the end."""
    fleet = settings.fleet
    if fleet is None:
        return
    home = AgentHome(settings.home)
    home.open(fleet.connection.authority)
    service.adapters.callback(lambda: home.close(remove=fleet.removes_home and not service.failed))


def bus_settings(settings: Settings, name: str) -> NatsSettings:
    """Return the settings of the agent's bus connection: to an address, or a forwarded socket."""
    if settings.fleet is not None and settings.fleet.connection.kind is ConnectionKind.SOCKETS:
        sockets = ForwardedSockets(Path(settings.fleet.connection.folder))
        login = settings.security.bus
        return NatsSettings.over_socket(
            sockets.bus, user=login.user, password=login.password, name=name
        )
    return NatsSettings.confined(
        settings.nats_url,
        settings.security,
        token=settings.token,
        name=name,
        replicas=settings.replicas,
    )


async def stop_when_silent(service: Service, bus: Bus, clock: Clock, limit_s: float) -> None:
    """Stop the agent, with an exit code of its own, once its bus has been away for the limit."""
    with suppress(UnavailableError):  # the bus was closed, so the agent stops already
        away = partial(bus.wait_connected, connected=False)
        await wait_silent(bus.wait_connected, away, clock, limit_s)
        get_logger().error("bus silent", limit_s=limit_s)
        service.stop(SILENCE_EXIT_CODE)


async def stop_when_refused(
    service: Service, refused: Callable[[float], Awaitable[None]], limit_s: float = REFUSED_LIMIT_S
) -> None:
    """Stop the agent, with an exit code of its own, once its credentials are revoked.

    Args:
        service: of the agent.
        refused: waits until the bus has refused them for a time, see `NatsBus.wait_refused`.
        limit_s: that time, in seconds.
    """
    await refused(limit_s)
    get_logger().error("credentials revoked")
    service.stop(REFUSED_EXIT_CODE)


def open_environments(settings: Settings) -> Environments:
    """Return the source of trials' environments: files of clients, or a login on this machine."""
    fleet, own = settings.fleet, environment.for_user_code()
    if fleet is None:
        return FileEnvironments(own, sys.executable)
    hook = write_trial_api(settings.work_directory / _TRIAL_API, trial_sdk_folder().parent)
    login = without_bundle(own, own_roots())
    return LoginEnvironments(login, fleet.setup_lines, fleet.python_path, hook)


def warm_program(settings: Settings) -> Path | None:
    """Return the path of the program of warm interpreters; None: none are used."""
    if not settings.warm:
        return None
    if settings.fleet is None:
        return trial_sdk_folder() / "warm.py"
    return warm_file(settings.work_directory / _TRIAL_API)


def open_shared_storage(service: Service, settings: Settings) -> MountedStorage | None:
    """Return the storage that trials write to, unmounted at the end; None: a disk of this machine.

    Raises:
        InvalidArgumentError: it would be mounted in the agent's own folder, which is removed.
    """
    if settings.fleet is None or settings.fleet.shared_storage is None:
        return None
    # The mount is the machine's: its daemon must not end with the processes of this agent.
    variables = {
        name: value
        for name, value in environment.for_user_code().items()
        if name != AGENT_FOLDER_VARIABLE
    }
    storage = MountedStorage(
        settings.fleet.shared_storage, settings.fleet.pool, settings.work_directory, variables
    )
    service.adapters.push_async_callback(storage.aclose)
    return storage


def experiments_root(settings: Settings, storage: MountedStorage | None) -> Path:
    """Return the default parent of experiments' folders."""
    return settings.work_directory / "experiments" if storage is None else storage.root


def machine_gpu_rules(fleet: AgentSettings | None) -> MachineGpuRules:
    """Return a fleet's GPU rules of this machine; `CUDA_VISIBLE_DEVICES` if it names no GPUs.

    Where the fleet names none, those of a batch job are its rule, as its environment names them.
    """
    if fleet is None:
        return NO_MACHINE_RULES
    visible = environment.for_user_code().get("CUDA_VISIBLE_DEVICES", "")
    allowed = parse_visible_devices(visible) if fleet.gpu_indices is None else fleet.gpu_indices
    return MachineGpuRules(allowed, fleet.use_active_gpu, fleet.trials_per_gpu)


async def drain_after(agent: Agent, clock: Clock, lifetime_s: float | None) -> None:
    """Drain the agent once its time is over; return at once if it has no limit (None)."""
    if lifetime_s is None:
        return
    await clock.sleep(lifetime_s)
    get_logger().info("agent drains", lifetime_s=lifetime_s)
    agent.drain()


def drain_on_interrupt(service: Service, agent: Agent, fleet: AgentSettings) -> None:
    """Drain an agent of the platform `joined` at the first Ctrl-C; stop it at a second one."""
    if fleet.platform != JOINED:
        return

    def interrupt() -> None:
        if agent.draining:
            service.stop()
        else:
            get_logger().info("agent drains", trials=len(agent.attempts))
            agent.drain()

    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, interrupt)
