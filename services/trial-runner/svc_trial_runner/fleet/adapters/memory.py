"""In-memory platform for tests: its agents are entries of a table."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover, leftovers_of


@dataclass(slots=True)
class InMemoryPlatform:
    """Platform whose agents are entries of a table; several adapters may share it.

    Attributes:
        capacity: number of agents that can run at once; None: no limit.
        agents: all agents by name, those of all pools and installations.
        launches: every name that was started, in order.
        failure: raised by each call of an adapter while it is set.
        problems: what `check` returns.
    """

    capacity: int | None = None
    agents: dict[AgentName, PlatformAgent] = field(default_factory=dict)
    launches: list[AgentName] = field(default_factory=list)
    failure: Exception | None = None
    problems: list[PlatformProblem] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def launch(self, order: AgentOrder) -> LaunchFailure | None:
        """Start an agent unless it exists; return why it was not started, else None."""
        if order.name in self.agents:
            return None
        live = [one for one in self.agents.values() if one.phase is not AgentPhase.ENDED]
        if self.capacity is not None and len(live) >= self.capacity:
            return LaunchFailure(order.name, f"all {self.capacity} machines have an agent")
        self.launches.append(order.name)
        self.set_phase(order.name, AgentPhase.RUNNING)
        return None

    def set_phase(self, name: AgentName, phase: AgentPhase, reason: str = "") -> None:
        """Change the platform's record of an agent; wake the adapters that wait for changes."""
        self.agents[name] = PlatformAgent(name, phase, f"machine-{name.number}", reason)
        self.notify()

    def forget(self, names: Sequence[AgentName]) -> None:
        """Remove agents from the table; wake the adapters that wait for changes."""
        for name in names:
            self.agents.pop(name, None)
        self.notify()

    def notify(self) -> None:
        """Wake the adapters that wait for changes."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def wait_changed(self) -> None:
        """Wait until an agent changes."""
        await self._changed.wait()


class InMemoryPlatformAdapter:
    """Adapter of an `InMemoryPlatform` for one pool.

    Args:
        platform: shared by the adapters of all pools.
        installation: whose agents it lists and ends.
        pool: as above.
    """

    def __init__(self, platform: InMemoryPlatform, installation: str, pool: str) -> None:
        self._platform = platform
        self._installation = installation
        self._pool = pool
        self._listed: dict[AgentName, PlatformAgent] = {}

    async def check(self) -> list[PlatformProblem]:
        """Return the problems that the platform is set to have."""
        self._raise_failure()
        return list(self._platform.problems)

    async def prepare(self) -> None:
        """Raise if the platform is set to fail."""
        self._raise_failure()

    async def capacity(self) -> int | None:
        """Return the platform's capacity, None: no limit; raise the failure that a test has set."""
        self._raise_failure()
        return self._platform.capacity

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        """Start agents; return those that the platform has no room for."""
        self._raise_failure()
        results = [self._platform.launch(order) for order in orders]
        return [failure for failure in results if failure is not None]

    async def agents(self) -> list[PlatformAgent]:
        """Return the agents of this pool and installation."""
        self._raise_failure()
        self._listed = self._own()
        return list(self._listed.values())

    async def terminate(self, names: Sequence[AgentName]) -> None:
        """Remove agents of this pool and installation."""
        self._raise_failure()
        self._platform.forget([name for name in names if name in self._own()])

    async def clean(self) -> None:
        """Remove all agents of this pool and installation."""
        self._raise_failure()
        self._platform.forget(list(self._own()))

    async def leftovers(self) -> list[Leftover]:
        """Return the installation's agents in the table, as leftovers by pool."""
        self._raise_failure()
        return leftovers_of(map(str, self._platform.agents), self._installation)

    async def clean_rest(self) -> None:
        """Do nothing: the table has agents only."""
        self._raise_failure()

    async def wait_changed(self) -> None:
        """Wait until the agents differ from those listed last."""
        while self._own() == self._listed:
            await self._platform.wait_changed()

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    def _own(self) -> dict[AgentName, PlatformAgent]:
        return {
            name: agent
            for name, agent in self._platform.agents.items()
            if (name.installation, name.pool) == (self._installation, self._pool)
        }

    def _raise_failure(self) -> None:
        if self._platform.failure is not None:
            raise self._platform.failure
