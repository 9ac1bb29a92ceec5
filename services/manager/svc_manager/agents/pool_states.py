"""Last known states of pools, as the fleet publishes them."""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Final

from google.protobuf.message import DecodeError

from nni_proto.runner.v1 import pool_pb2
from nni_wire.pools import LOCAL_POOL, experiment_of_pool
from svc_common import subjects
from svc_common.experiment_events.causes import WaitCause, WaitReason
from svc_common.logs import get_logger
from svc_common.messaging.ports import LastValues
from svc_manager.converters.pools import state_from_bytes
from svc_manager.domain.explanation import PoolFacts

_NOT_THERE_YET: Final = frozenset(
    {
        pool_pb2.POOL_AGENT_STATE_LAUNCHING,
        pool_pb2.POOL_AGENT_STATE_PENDING,
        pool_pb2.POOL_AGENT_STATE_STARTING,
    }
)

_PLATFORMS_KEPT: Final = 10_000
"""Agents that are gone and whose platform is known: trials are shown with it."""


class PoolStates:
    """States of all pools by name: their agents, and why a pool does not grow.

    Args:
        last_values: the bus has the last state of each pool.
        on_gone: called with the id of each agent that its platform has no more.
    """

    def __init__(
        self, last_values: LastValues, on_gone: Callable[[str], None] = lambda _: None
    ) -> None:
        self._last_values = last_values
        self._on_gone = on_gone
        self._states: dict[str, pool_pb2.PoolState] = {}
        self._agents: dict[str, pool_pb2.PoolAgent] = {}
        self._platforms: dict[str, str] = {}
        """Platforms by the id of the agent, also of those that are gone; oldest first."""
        self._defined: set[str] = set()
        """Pools of the installation that are not being removed."""

    async def listen(self) -> None:
        """Read the current states and definitions from the bus, then new ones; until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._listen(subjects.ALL_POOL_STATES, self.handle_state))
            tasks.create_task(self._listen(subjects.ALL_POOL_DEFINITIONS, self.handle_definition))

    async def _listen(self, pattern: str, handle: Callable[[str, bytes], None]) -> None:
        async with aclosing(self._last_values.follow(pattern)) as values:
            async for value in values:
                handle(value.subject, value.payload)
        # The deletion of a definition is no message; `removed` comes before it.

    def handle_definition(self, subject: str, payload: bytes) -> None:
        """Add or remove a pool of the installation by its definition; drop a damaged message."""
        pool = subjects.pool_of_subject(subject)
        try:
            definition = pool_pb2.PoolDefinition.FromString(payload)
        except DecodeError as error:
            get_logger().warning("definition of a pool dropped", subject=subject, error=str(error))
            return
        (self._defined.discard if definition.removed else self._defined.add)(pool)

    def handle_state(self, subject: str, payload: bytes) -> None:
        """Replace a pool's state; report agents that are gone; log and drop a damaged message."""
        pool = subjects.pool_of_subject(subject)
        try:
            state = state_from_bytes(payload)
        except DecodeError as error:
            get_logger().warning("state of a pool dropped", subject=subject, error=str(error))
            return
        before = self._states.pop(pool, None)
        names = {agent.name for agent in before.agents} if before is not None else set()
        for name in names:
            self._agents.pop(name, None)
        if not (state.cleaned and not state.agents):
            self._states[pool] = state
            self._agents.update((agent.name, agent) for agent in state.agents)
            self._platforms.update((agent.name, agent.platform) for agent in state.agents)
            while len(self._platforms) > _PLATFORMS_KEPT:
                del self._platforms[next(iter(self._platforms))]
        for name in sorted(names.difference(agent.name for agent in state.agents)):
            self._on_gone(name)

    def agents(self) -> Iterator[tuple[str, pool_pb2.PoolAgent]]:
        """Yield pool and agent of all agents that platforms run or have been ordered."""
        for pool, state in self._states.items():
            for agent in state.agents:
                yield pool, agent

    def states(self) -> Iterator[pool_pb2.PoolState]:
        """Yield the last known state of each pool that is not cleaned."""
        yield from self._states.values()

    def agent(self, runner_id: str) -> pool_pb2.PoolAgent | None:
        """Return an agent by its id; None: no platform has it."""
        return self._agents.get(runner_id)

    def platform(self, runner_id: str) -> str:
        """Return the platform of an agent, also if it is gone; empty: it is not known."""
        return self._platforms.get(runner_id, "")

    def facts(self, pool: str) -> PoolFacts | None:
        """Return why a pool does not grow, and how many agents are starting; None: unknown."""
        if not self._exists(pool):
            return PoolFacts(
                "this installation has no such pool",
                f"see nnictl pool list; make it with: nnictl pool create FILE (name: {pool})",
            )
        state = self._states.get(pool)
        if state is None:
            return None
        coming = [agent for agent in state.agents if agent.state in _NOT_THERE_YET]
        return PoolFacts(
            state.reason,
            state.remedy,
            len(coming),
            next((agent.reason for agent in coming if agent.reason), ""),
        )

    def _exists(self, pool: str) -> bool:
        """Return whether a pool exists: of this machine, of an experiment, or defined."""
        of_installation = pool != LOCAL_POOL and experiment_of_pool(pool) is None
        return not of_installation or pool in self._defined

    def wait(self, pool: str) -> WaitReason | None:
        """Return why trials of a pool get no agent; None: the fleet names no reason."""
        facts = self.facts(pool)
        if facts is None or not facts.reason:
            return None
        return WaitReason(WaitCause.PLATFORM, detail=facts.reason, remedy=facts.remedy)
