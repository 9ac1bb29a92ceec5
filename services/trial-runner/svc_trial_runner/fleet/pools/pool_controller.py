"""Control of one pool: folds events, decides, calls platforms, publishes the state."""

import asyncio
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from svc_common.clock import Clock
from svc_common.errors import ServiceError
from svc_common.logs import get_logger
from svc_common.messaging.ports import Bus
from svc_common.subjects import control_subject, pool_state_subject
from svc_common.tasks import TaskOwner, wait_first
from svc_trial_runner.fleet.converters import drain_to_bytes, slots_to_bytes, state_to_bytes
from svc_trial_runner.fleet.domain.agents import AgentName
from svc_trial_runner.fleet.domain.decisions import decide
from svc_trial_runner.fleet.domain.needs import JOINED_PLATFORM, PoolNeed
from svc_trial_runner.fleet.domain.pool import Pool
from svc_trial_runner.fleet.domain.pool_events import (
    ActionFailed,
    ActionStarted,
    AgentEnrolled,
    DrainSent,
    PlatformAction,
    PoolEvent,
    SlotsSent,
)
from svc_trial_runner.fleet.domain.pool_states import PoolState, pool_state
from svc_trial_runner.fleet.pools.platform_calls import PlatformCalls
from svc_trial_runner.fleet.ports import CredentialStore, PlatformOpener

PUBLISH_EVERY_S: Final = 60.0
"""Interval at which the state is published while the time of agents runs: a restart reads there
until when it has counted."""


@dataclass(frozen=True, slots=True)
class FleetDependencies:
    """Dependencies of all pools: installation id, bus, platform opener, credentials, clock."""

    installation: str
    bus: Bus
    opener: PlatformOpener
    credentials: CredentialStore
    clock: Clock


class PoolController:
    """Control loop of one pool: folds events, decides, calls platforms, publishes the state.

    Events may be applied at any time, on the loop. Before a platform is called, the state with the
    names of its new agents is on the bus's disk.

    Args:
        name: of the pool.
        dependencies: shared by all pools.
        failed: called with the error of a task of this pool.
    """

    def __init__(
        self,
        name: str,
        dependencies: FleetDependencies,
        failed: Callable[[str, BaseException], None],
    ) -> None:
        self._dependencies = dependencies
        self._clock = dependencies.clock
        self._pool = Pool(dependencies.installation, name)
        self._platforms: dict[str, PlatformCalls] = {}
        self._tasks = TaskOwner(failed)
        self._woken = asyncio.Event()
        self._publishing = asyncio.Lock()
        self._published: PoolState | None = None
        self._due_s = math.inf
        """Instant at which the published state is published again."""

    @property
    def state(self) -> PoolState:
        """Current state of the pool, in the form that is published."""
        return pool_state(self._pool, self._clock.monotonic_s())

    @property
    def need(self) -> PoolNeed:
        """Current need of the pool: trials, limits, platforms; RuntimeError before the first one.

        Raises:
            RuntimeError: none was applied.
        """
        if self._pool.need is None:
            raise RuntimeError(f"pool {self._pool.name} has no need")
        return self._pool.need

    def apply(self, event: PoolEvent) -> None:
        """Fold an event and wake the loop."""
        self._pool.apply(event, self._clock.monotonic_s())
        self._woken.set()

    async def run(self) -> None:
        """Decide after each event and at each planned instant; return once the pool is clean.

        Returns when the pool is closed and nothing of it is left on its platforms.
        """
        while True:
            self._woken.clear()
            wake_s = await self._step()
            if self._pool.cleaned and self._published is not None and self._published.cleaned:
                return
            due_s = self._due_s if wake_s is None else min(wake_s, self._due_s)
            delay_s = due_s - self._clock.monotonic_s()
            if delay_s == math.inf:
                await self._woken.wait()
            else:
                await wait_first(self._woken.wait(), self._clock.sleep(delay_s))

    async def enrol(self, slots: int, machine: str, replaced: int | None) -> AgentName:
        """Add an agent that the fleet did not launch; return its name once the bus has stored it.

        Args:
            slots: trials at once.
            machine: its host name.
            replaced: number of the agent that the machine was before; None: none.
        """
        pool = self._pool
        name = AgentName(pool.installation, pool.name, pool.last_number + 1)
        before = None if replaced is None else AgentName(pool.installation, pool.name, replaced)
        self.apply(AgentEnrolled(name, JOINED_PLATFORM, slots, machine, before))
        await self._publish()
        return name

    async def aclose(self) -> None:
        """End the calls in progress and close the adapters; agents stay. May be called twice."""
        await self._tasks.aclose()
        await asyncio.gather(*(platform.aclose() for platform in self._platforms.values()))

    async def _step(self) -> float | None:
        """Decide once: send orders, publish the state, start actions; return the next instant."""
        now_s = self._clock.monotonic_s()
        decision = decide(self._pool, now_s)
        for name, reason in decision.lost:
            self._pool.give_up(self._pool.agents[name], reason, now_s)
        if decision.drains:
            self._drain(decision.drains)
        if decision.slots:
            self._send_slots(decision.slots)
        for key, action in decision.actions.items():
            self._pool.apply(ActionStarted(key, action), now_s)
        await self._publish()
        for key, action in decision.actions.items():
            self._tasks.start(self._perform(key, action), f"{self._pool.name}: {key}")
        repeats = decision.lost or decision.drains or decision.slots
        return now_s if repeats else decision.wake_s

    async def _perform(self, key: str, action: PlatformAction) -> None:
        need = self._pool.need
        section = None if need is None else need.sections.get(key)
        result = await self._calls(key).perform(action, section)
        if isinstance(result, ActionFailed):
            get_logger().warning(
                "action failed",
                pool=self._pool.name,
                platform=key,
                action=type(action).__name__,
                reason=result.reason,
            )
        self.apply(result)

    def _calls(self, key: str) -> PlatformCalls:
        calls = self._platforms.get(key)
        if calls is None:
            shared = self._dependencies
            calls = self._platforms[key] = PlatformCalls(
                self._pool.name, key, shared.opener, shared.credentials, self._clock, self.apply
            )
            self._tasks.start(calls.watch(), f"{self._pool.name}: watch {key}")
        return calls

    def _drain(self, names: tuple[AgentName, ...]) -> None:
        for name in names:
            subject = control_subject(str(name))
            self._dependencies.bus.signals.publish(subject, drain_to_bytes())
        self._pool.apply(DrainSent(names), self._clock.monotonic_s())

    def _send_slots(self, slots: Mapping[AgentName, int]) -> None:
        for name, number in slots.items():
            subject = control_subject(str(name))
            self._dependencies.bus.signals.publish(subject, slots_to_bytes(number))
        self._pool.apply(SlotsSent(slots), self._clock.monotonic_s())

    async def _publish(self) -> None:
        """Publish the state if it has changed or is due; return once the bus has it on disk."""
        async with self._publishing:  # calls for one subject must not overlap
            await self._publish_state(self.state)

    async def _publish_state(self, state: PoolState) -> None:
        now_s = self._clock.monotonic_s()
        repeated = state == self._published
        if repeated and now_s < self._due_s:
            return
        if self._published is None or state.reason != self._published.reason:
            get_logger().info(
                "pool", pool=state.pool, agents=len(state.agents), reason=state.reason
            )
        payload = state_to_bytes(state, self._clock.now(), now_s)
        counting = any(agent.counts_from_s is not None for agent in state.agents)
        self._due_s = now_s + PUBLISH_EVERY_S if counting else math.inf
        subject = pool_state_subject(state.pool)
        # A repetition is no news: a bus that is away does not end the control of the pool.
        with suppress(*((ServiceError,) if repeated else ())):
            await self._dependencies.bus.last_values.publish(subject, payload)
        self._published = state
