"""Registry of pools: follows needs, definitions, presence messages and the bus connection."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import Final

from svc_common.errors import InvalidArgumentError
from svc_common.large_work import off_loop
from svc_common.logs import get_logger
from svc_common.messaging.ports import LastValue, Signal
from svc_common.subjects import (
    ALL_POOL_DEFINITIONS,
    ALL_POOL_NEEDS,
    ALL_POOL_STATES,
    ALL_PRESENCES,
    pool_of_subject,
    runner_of_presence,
)
from svc_common.tasks import TaskOwner
from svc_trial_runner.fleet.converters import (
    definition_from_bytes,
    need_from_bytes,
    presence_from_bytes,
    restored_from_bytes,
)
from svc_trial_runner.fleet.domain.agents import AgentName, parse_agent_name
from svc_trial_runner.fleet.domain.needs import JOINED_PLATFORM, PoolNeed, PoolPlatform
from svc_trial_runner.fleet.domain.pool_events import (
    ListeningChanged,
    NeedChanged,
    PoolEvent,
    StateRestored,
)
from svc_trial_runner.fleet.domain.shared_pools import SharedPool
from svc_trial_runner.fleet.pools.enrolments import Enrolments
from svc_trial_runner.fleet.pools.leftover_removal import LeftoverRemoval
from svc_trial_runner.fleet.pools.platform_checks import PlatformChecks
from svc_trial_runner.fleet.pools.pool_controller import FleetDependencies, PoolController

RESTART_AFTER_S: Final = 30.0
"""Delay of a pool whose control has failed."""


class Fleet:
    """Registry of the pools of one installation, each with a task of its own.

    Args:
        dependencies: shared by all pools.
        enrolments: of machines that people bring; None: there are none.
    """

    def __init__(
        self, dependencies: FleetDependencies, enrolments: Enrolments | None = None
    ) -> None:
        self._dependencies = dependencies
        self._bus = dependencies.bus
        self._controllers: dict[str, PoolController] = {}
        self._restored: dict[str, StateRestored] = {}
        """Last states of pools that have no controller."""
        self._shared: dict[str, SharedPool] = {}
        """Pools of the installation, by name."""
        self._removal = LeftoverRemoval(
            dependencies.opener, dependencies.credentials, self._living_pools
        )
        self._checks = PlatformChecks(
            dependencies.bus.last_values, dependencies.opener, dependencies.clock, self._removal
        )
        self._enrolments = enrolments
        if enrolments is not None:
            enrolments.attach(self._controllers.get, self._refresh)
        self._tasks = TaskOwner(self._task_failed)
        self._closed = False

    @property
    def pools(self) -> tuple[str, ...]:
        """Names of the pools that are served."""
        return tuple(self._controllers)

    async def run(self) -> None:
        """Read the states that an earlier process has published, then serve all pools, for ever."""
        for value in await self._bus.last_values.read(ALL_POOL_STATES):
            self._restore(value)
        if self._enrolments is not None:
            await self._enrolments.restore()
        # Before the needs: the first presence of a launched agent must not be missed.
        presences = await self._bus.signals.subscribe(ALL_PRESENCES)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._follow_presences(presences), name="presences")
            tasks.create_task(self._follow_connection(), name="connection")
            tasks.create_task(self._follow_definitions(), name="definitions")
            tasks.create_task(self._follow_needs(), name="needs")
            tasks.create_task(self._checks.run(), name="checks")
            if self._enrolments is not None:
                tasks.create_task(self._enrolments.run(), name="enrolments")

    async def _living_pools(self) -> set[str]:
        """Return the pools that exist, and those of this process that are not clean yet."""
        living = set(self._controllers)
        for value in await self._bus.last_values.read(ALL_POOL_NEEDS):
            need = need_from_bytes(value.payload)
            if not need.closed:
                living |= {pool_of_subject(value.subject), need.pool}
        for value in await self._bus.last_values.read(ALL_POOL_DEFINITIONS):
            living.add(pool_of_subject(value.subject))
        return living

    async def aclose(self) -> None:
        """End all tasks; agents stay. May be called twice."""
        self._closed = True
        await self._checks.aclose()
        if self._enrolments is not None:
            await self._enrolments.aclose()
        await self._tasks.aclose()
        for controller in tuple(self._controllers.values()):
            await controller.aclose()
        self._controllers.clear()

    async def _follow_needs(self) -> None:
        async with aclosing(self._bus.last_values.follow(ALL_POOL_NEEDS)) as needs:
            async for value in needs:
                self._handle_need(value)

    async def _follow_definitions(self) -> None:
        async with aclosing(self._bus.last_values.follow(ALL_POOL_DEFINITIONS)) as definitions:
            async for value in definitions:
                self._handle_definition(value)

    def _handle_need(self, value: LastValue) -> None:
        """Pass a pool's need (demand) on to its controller; log an invalid message."""
        try:
            name = pool_of_subject(value.subject)
            need = need_from_bytes(value.payload)
            # Names of platforms are narrower.
            AgentName(self._dependencies.installation, need.pool or name, 0)
        except InvalidArgumentError as error:
            get_logger().error("need refused", subject=value.subject, error=error.message)
            return
        if need.pool in {"", name}:
            self._serve(name, need)
        else:
            shared = self._shared.setdefault(need.pool, SharedPool())
            shared.demand(name, need)
            self._serve_shared(need.pool)

    def _handle_definition(self, value: LastValue) -> None:
        """Apply a definition to the need of its pool; log an invalid message."""
        try:
            name = pool_of_subject(value.subject)
            definition = definition_from_bytes(value.payload)
            AgentName(self._dependencies.installation, name, 0)
        except InvalidArgumentError as error:
            get_logger().error("definition refused", subject=value.subject, error=error.message)
            return
        self._shared.setdefault(name, SharedPool()).define(replace(definition, pool=name))
        self._serve_shared(name)

    def _serve_shared(self, name: str) -> None:
        need = self._shared[name].need
        if need is not None:
            self._serve(name, need)

    def _serve(self, name: str, need: PoolNeed) -> None:
        """Pass a need on to the controller of a pool; start one unless nothing is left to do."""
        if self._closed:
            return
        need = self._with_joined(name, need)
        if name in self._controllers:
            self._controllers[name].apply(NeedChanged(need))
        elif not self._is_done(name, need):
            self._controllers[name] = self._controller(name, need)
            self._tasks.start(self._run(name), f"pool {name}")

    def _with_joined(self, name: str, need: PoolNeed) -> PoolNeed:
        """Return the need, with the platform `joined` added if machines are invited to the pool."""
        is_invited = self._enrolments is not None and self._enrolments.is_joinable(name)
        if not is_invited or any(one.by_hand for one in need.platforms):
            return need
        return replace(need, platforms=(*need.platforms, PoolPlatform(JOINED_PLATFORM, {})))

    def _refresh(self, name: str) -> None:
        """Apply the need of a pool again, after a change of its invitations."""
        controller = self._controllers.get(name)
        if controller is not None:
            self._serve(name, controller.need)

    def _is_done(self, name: str, need: PoolNeed) -> bool:
        """Return whether a closed pool was published as clean, so that nothing is left to do."""
        restored = self._restored.get(name)
        if restored is None or not need.closed:
            return False
        return restored.cleaned and restored.log_sequence >= need.log_sequence

    def _controller(self, name: str, need: PoolNeed) -> PoolController:
        controller = PoolController(name, self._dependencies, self._task_failed)
        restored = self._restored.pop(name, None)
        if restored is not None:
            controller.apply(restored)
        controller.apply(NeedChanged(need))
        return controller

    async def _run(self, name: str) -> None:
        """Run the controller of a pool until it is clean; start another one after an error."""
        # An agent of the new pool could have the name of one that is being removed.
        await self._removal.wait_removed(name)
        while True:
            controller = self._controllers[name]
            try:
                await controller.run()
            except Exception:  # noqa: BLE001 - rim: the other pools go on
                get_logger().exception("pool failed", pool=name)
                await controller.aclose()
                await self._dependencies.clock.sleep(RESTART_AFTER_S)
                self._restored[name] = controller.state.restored()
                self._controllers[name] = self._controller(name, controller.need)
            else:
                del self._controllers[name]
                self._restored[name] = controller.state.restored()
                if name in self._shared:
                    self._shared[name].forget_removed()
                await controller.aclose()
                if name not in self._controllers:  # it was not opened again meanwhile
                    if self._enrolments is not None:
                        self._enrolments.forget(name)
                    await self._dependencies.opener.forget(name)
                return

    async def _follow_presences(self, presences: AsyncGenerator[Signal, None]) -> None:
        async with aclosing(presences):
            async for signal in presences:
                await self._handle_presence(signal)

    async def _handle_presence(self, signal: Signal) -> None:
        """Pass a presence message to the pool in the agent's name; ignore other installations."""
        try:
            name = parse_agent_name(runner_of_presence(signal.subject))
            if name is None or name.installation != self._dependencies.installation:
                return
            if name.pool not in self._controllers:
                return
            size_bytes = len(signal.payload)
            event = await off_loop(size_bytes, presence_from_bytes, name, signal.payload)
            controller = self._controllers.get(name.pool)
            if controller is not None:
                controller.apply(event)
        except InvalidArgumentError as error:
            get_logger().error("presence refused", subject=signal.subject, error=error.message)

    async def _follow_connection(self) -> None:
        """Notify the pools when the connection to the bus is lost, and when it is restored."""
        while True:
            await self._bus.wait_connected(connected=False)
            self._broadcast(ListeningChanged(listening=False))
            await self._bus.wait_connected(connected=True)
            self._broadcast(ListeningChanged(listening=True))

    def _broadcast(self, event: PoolEvent) -> None:
        for controller in self._controllers.values():
            controller.apply(event)

    def _restore(self, value: LastValue) -> None:
        try:
            name = pool_of_subject(value.subject)
            clock = self._dependencies.clock
            self._restored[name] = restored_from_bytes(
                value.payload, clock.now(), clock.monotonic_s()
            )
        except InvalidArgumentError as error:
            get_logger().error("state refused", subject=value.subject, error=error.message)

    @staticmethod
    def _task_failed(name: str, error: BaseException) -> None:
        get_logger().error("task failed", task=name, exc_info=error)
