"""Platform `local` of a pool with several platforms: one agent on the fleet's machine.

The agent outlives the fleet. It is found again by its folder, where the process above it holds a
lock and has written its number and start time, as on every other machine; without bus it ends
itself. It runs from this installation, so no bundle is packed.
"""

import asyncio
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from svc_common import environment
from svc_common.storage.atomic_files import atomic_file
from svc_trial_runner.agent_settings import (
    AgentSettings,
    ConnectionKind,
    ConnectionSettings,
    write_agent_settings,
)
from svc_trial_runner.fleet.adapters.bundles.worker_agents import (
    ENDED,
    PREPARED,
    RUNNING,
    remove,
    start,
    state,
)
from svc_trial_runner.fleet.adapters.bundles.worker_bundles import SITE
from svc_trial_runner.fleet.adapters.bundles.worker_commands import worker_program
from svc_trial_runner.fleet.adapters.bundles.worker_folders import WorkerError, WorkerFolders
from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
    parse_agent_name,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover, leftovers_of
from svc_trial_runner.fleet.domain.needs import SLOTS_OPTION
from svc_trial_runner.fleet.domain.section_values import gpu_numbers
from svc_trial_runner.fleet.ports import AdapterContext, PlatformError

PLATFORM: Final = "local"
AGENT_COMMAND: Final = (sys.executable, "-P", "-m", "svc_trial_runner", "--settings")
"""Command of an agent; `-` follows, and its settings are on the standard input."""
_GRACE_S: Final = 10.0
"""Time between the request to end an agent and its kill."""
_BUNDLE: Final = "installed"
_GPU_INDICES: Final = "gpuIndices"
_RUN: Final = """\
import os
import pathlib
import sys

if sys.argv[1] == "agent":
    os.execv("/bin/sh", ["/bin/sh", "-c", {command!r}, "agent", sys.argv[2]])
sys.argv = sys.argv[1:]
exec((pathlib.Path(__file__).parent / "program.py").read_bytes())
"""
"""Program in place of that of a bundle: it starts agents from this installation."""


class LocalAgentsAdapter:
    """`PlatformAdapter` of one agent on the fleet's machine, started from this installation.

    Args:
        context: of the pool.
        command: of an agent, which reads its settings from the standard input.
    """

    def __init__(self, context: AdapterContext, command: Sequence[str] = AGENT_COMMAND) -> None:
        self._context = context
        self._command = tuple(command)
        self._folders = WorkerFolders(str(context.folder))
        self._processes: list[int] = []
        """Numbers of the processes that were listed as running."""

    async def check(self) -> list[PlatformProblem]:
        """Return problems of the options `slots` and `gpuIndices`."""
        options = self._context.section.options
        problems = []
        slots = options.get(SLOTS_OPTION, 1)
        if not isinstance(slots, int) or isinstance(slots, bool) or slots < 1:
            problems.append(PlatformProblem(SLOTS_OPTION, "must be an integer >= 1", repr(slots)))
        try:
            gpu_indices(options)
        except ValueError:
            shown = repr(options.get(_GPU_INDICES))
            problems.append(PlatformProblem(_GPU_INDICES, "must be integers >= 0", shown))
        return problems

    async def prepare(self) -> None:
        """Write the program that starts agents."""
        await asyncio.to_thread(self._prepare)

    async def capacity(self) -> int | None:
        """Return 1: one agent has all slots of this machine."""
        return 1

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Start agents unless they run or have ended; return failures with the last output."""
        await self.prepare()
        results = [await asyncio.to_thread(self._start, order) for order in orders]
        return [failure for failure in results if failure is not None]

    async def agents(self) -> list[PlatformAgent]:
        """List this pool's started agents, ended ones too; note running pids to wait for."""
        states = await asyncio.to_thread(self._states)
        running = [found for found in states.values() if found["state"] == RUNNING]
        self._processes = [found["pid"] for found in running]
        return [_agent(name, found) for name, found in states.items() if found["state"] != PREPARED]

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """End agents with their trials, and remove their folders."""
        await asyncio.to_thread(self._remove, names)

    async def clean(self) -> None:
        """End all agents of this pool, and remove their folders."""
        await self.terminate(list(await asyncio.to_thread(self._states)))

    async def leftovers(self) -> list[Leftover]:
        """Return a leftover per pool of this installation: agents with a folder on this machine."""
        return await asyncio.to_thread(self._leftovers)

    async def clean_rest(self) -> None:
        """Do nothing: a folder of a pool has all that its agents use."""

    async def wait_changed(self) -> None:
        """Wait without limit until a process that was listed as running has ended."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()
        descriptors: list[int] = []
        try:
            for pid in self._processes:
                try:
                    descriptors.append(os.pidfd_open(pid))
                except ProcessLookupError:
                    return
                loop.add_reader(descriptors[-1], ended.set)
            await ended.wait()
        finally:
            for descriptor in descriptors:
                loop.remove_reader(descriptor)
                os.close(descriptor)

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    def _prepare(self) -> None:
        bundle = self._folders.bundle(_BUNDLE)
        # Variables of the fleet's process mean nothing, or something else, in an agent's.
        own = environment.current().keys() - environment.for_user_code().keys()
        names = " ".join(f"-u {shlex.quote(name)}" for name in sorted(own))
        command = f'exec env {names} {shlex.join(self._command)} "$1"'
        try:
            self._folders.open()
            (bundle / SITE).mkdir(parents=True, exist_ok=True)
            # An agent of an earlier fleet may be about to read them.
            with atomic_file(bundle / "program.py") as file:
                file.write(worker_program())
            with atomic_file(bundle / "run.py") as file:
                file.write(_RUN.format(command=command).encode())
        except (WorkerError, OSError) as error:
            raise PlatformError(str(error)) from error

    def _start(self, order: AgentOrder) -> LaunchFailure | None:
        name = str(order.name)
        context = self._context
        storage = context.section.shared_storage
        settings = AgentSettings(
            name=name,
            pool=context.pool,
            platform=context.section.platform,
            home=str(self._folders.agent(name) / "home"),
            connection=ConnectionSettings(
                ConnectionKind.DIRECT, context.endpoints.bus, context.endpoints.manager_grpc
            ),
            bus_user=order.credentials.bus_user,
            bus_password=order.credentials.bus_password,
            manager_token=order.credentials.manager_token,
            slots=order.slots,
            max_trials=order.max_trials,
            gpu_indices=gpu_indices(context.section.options),
            shared_storage=None
            if storage is None
            else replace(storage, remote_mount_point=storage.local_mount_point),
        )
        try:
            if state(self._folders, name)["state"] != ENDED:
                start(self._folders, name, _BUNDLE, write_agent_settings(settings))
        except WorkerError as error:
            self._remove([order.name])
            return LaunchFailure(order.name, error.message, error.remedy, error.permanent)
        return None

    def _states(self) -> dict[AgentName, dict[str, Any]]:
        found = {}
        for folder_name in self._folders.names():
            name = parse_agent_name(folder_name)
            ours = (self._context.installation, self._context.pool)
            if name is not None and (name.installation, name.pool) == ours:
                found[name] = state(self._folders, folder_name)
        return found

    def _leftovers(self) -> list[Leftover]:
        own = self._context.folder
        names: list[str] = []
        for folder in {own, *own.parents[1].glob(f"*/{PLATFORM}")}:
            names += WorkerFolders(str(folder)).names()
        return leftovers_of(names, self._context.installation, PLATFORM)

    def _remove(self, names: Sequence[AgentName]) -> None:
        try:
            remove(self._folders, [str(name) for name in names], _GRACE_S)
        except WorkerError as error:
            raise PlatformError(error.message, error.remedy) from error


def gpu_indices(options: Mapping[str, object]) -> tuple[int, ...] | None:
    """Return the GPU indices that `gpuIndices` names; None: all; raise ValueError for a bad one.

    Raises:
        ValueError: they are no integers >= 0, alone, in a list, or separated by commas.
    """
    value = options.get(_GPU_INDICES)
    return None if value is None else gpu_numbers(value)


def _agent(name: AgentName, found: Mapping[str, Any]) -> PlatformAgent:
    running = found["state"] == RUNNING
    phase = AgentPhase.RUNNING if running else AgentPhase.ENDED
    return PlatformAgent(name, phase, found["host"], "" if running else found.get("reason", ""))
