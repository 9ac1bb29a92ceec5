"""Conformance suite of platform adapters: what every `PlatformAdapter` must do, as tests.

Subclass `PlatformConformance` in a test module, implement `open_stage`, and let pytest collect the
class. Each test runs an event loop of its own, so no plugin of pytest is needed.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import ClassVar, Final

from svc_trial_runner.fleet.domain.agents import (
    AgentCredentials,
    AgentName,
    AgentOrder,
    AgentPhase,
    PlatformAgent,
)
from svc_trial_runner.fleet.ports import PlatformAdapter, PlatformCleaner

INSTALLATION: Final = "0123abcd"
OTHER_INSTALLATION: Final = "9876dcba"
POOL: Final = "exp-suite"
OTHER_POOL: Final = "exp-suite-2"
"""It begins like `POOL`, so that names are compared in full."""
_LIVE: Final = frozenset({AgentPhase.PENDING, AgentPhase.STARTING, AgentPhase.RUNNING})
_LOOK_EVERY_S: Final = 1.0
"""A change that `wait_changed` does not notice is found after this time."""


def agent_name(number: int, pool: str = POOL, installation: str = INSTALLATION) -> AgentName:
    """Return the name of an agent of the suite."""
    return AgentName(installation, pool, number)


def agent_order(name: AgentName) -> AgentOrder:
    """Return an order of an agent with one slot and credentials that no server knows."""
    return AgentOrder(name, AgentCredentials(f"user-{name.number}", "password", "token"), slots=1)


class PlatformStage(ABC):
    """One platform for one test, on which adapters of several pools work.

    What an adapter starts need not be a real agent, but it must run until it is ended: bus and
    manager do not exist here.
    """

    @abstractmethod
    def adapter(
        self, pool: str = POOL, installation: str = INSTALLATION
    ) -> PlatformAdapter:  # pragma: no cover - abstract
        """Return a new adapter of a pool; the stage closes it at its end."""

    @abstractmethod
    async def end_agent(self, name: AgentName) -> None:
        """End an agent's process or job as a crash or another user would; it is listed before."""

    def broken_adapter(self) -> PlatformAdapter | None:
        """Return an adapter whose section breaks a rule of `check`; None: no rule can be broken."""
        return None


class PlatformConformance(ABC):
    """Suite that every adapter of a platform passes.

    Attributes:
        limit_s: time within which the platform starts or ends an agent, in seconds.
        capacity: what `capacity` returns on the stage; None: the platform has no limit.
    """

    limit_s: ClassVar[float] = 60.0
    capacity: ClassVar[int | None] = None

    @abstractmethod
    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        """Return a context with a platform that has no agent and room for at least two.

        Args:
            folder: empty folder of the test.
        """

    def test_section_of_the_stage_has_no_problem(self, tmp_path: Path) -> None:
        """The section that the other tests use is accepted."""

        async def case(stage: PlatformStage) -> None:
            assert await stage.adapter().check() == []

        self._run(case, tmp_path)

    def test_check_finds_a_broken_section_and_starts_nothing(self, tmp_path: Path) -> None:
        """A rule that is broken is a problem with field and rule."""

        async def case(stage: PlatformStage) -> None:
            broken = stage.broken_adapter()
            if broken is None:
                return
            problems = await broken.check()
            assert problems
            assert all(problem.field and problem.rule for problem in problems)
            assert await stage.adapter().agents() == []

        self._run(case, tmp_path)

    def test_new_platform_has_no_agents(self, tmp_path: Path) -> None:
        """The list is empty before the first launch."""

        async def case(stage: PlatformStage) -> None:
            adapter = stage.adapter()
            await adapter.prepare()
            assert await adapter.agents() == []

        self._run(case, tmp_path)

    def test_prepare_may_be_repeated(self, tmp_path: Path) -> None:
        """A second call finds the work of the first one."""

        async def case(stage: PlatformStage) -> None:
            adapter = stage.adapter()
            await adapter.prepare()
            await adapter.prepare()

        self._run(case, tmp_path)

    def test_capacity_is_the_platforms(self, tmp_path: Path) -> None:
        """The number of agents that the platform can have is known."""

        async def case(stage: PlatformStage) -> None:
            adapter = stage.adapter()
            await adapter.prepare()
            assert await adapter.capacity() == self.capacity

        self._run(case, tmp_path)

    def test_launched_agents_are_listed(self, tmp_path: Path) -> None:
        """Agents are on the list once `launch` has returned, and run after a while."""

        async def case(stage: PlatformStage) -> None:
            adapter = stage.adapter()
            names = await self._launch(adapter, 1, 2)
            assert {agent.name for agent in await adapter.agents()} == names
            await self._wait(adapter, lambda agents: _running(agents) == names)

        self._run(case, tmp_path)

    def test_second_launch_of_an_order_starts_nothing(self, tmp_path: Path) -> None:
        """An order whose agent exists is done already."""

        async def case(stage: PlatformStage) -> None:
            adapter = stage.adapter()
            names = await self._launch(adapter, 1)
            await self._wait(adapter, lambda agents: _running(agents) == names)
            assert await adapter.launch([agent_order(agent_name(1))]) == []
            assert [agent.name for agent in await adapter.agents()] == [agent_name(1)]

        self._run(case, tmp_path)

    def test_launch_of_no_order_does_nothing(self, tmp_path: Path) -> None:
        """An empty list of orders is no error."""

        async def case(stage: PlatformStage) -> None:
            adapter = stage.adapter()
            await adapter.prepare()
            assert await adapter.launch([]) == []
            assert await adapter.agents() == []

        self._run(case, tmp_path)

    def test_terminated_agents_are_gone_and_the_others_stay(self, tmp_path: Path) -> None:
        """`terminate` ends the named agents only, and may be repeated."""

        async def case(stage: PlatformStage) -> None:
            adapter = stage.adapter()
            names = await self._launch(adapter, 1, 2)
            await self._wait(adapter, lambda agents: _running(agents) == names)
            for _ in range(2):
                await adapter.terminate([agent_name(1)])
                assert _live(await adapter.agents()) == {agent_name(2)}
            assert {agent.name for agent in await adapter.agents()} == {agent_name(2)}

        self._run(case, tmp_path)

    def test_agents_that_never_existed_may_be_terminated(self, tmp_path: Path) -> None:
        """An unknown name is no error."""

        async def case(stage: PlatformStage) -> None:
            adapter = stage.adapter()
            await adapter.prepare()
            await adapter.terminate([agent_name(7)])
            await adapter.terminate([])
            assert await adapter.agents() == []

        self._run(case, tmp_path)

    def test_agent_that_ended_is_listed_as_ended_until_it_is_terminated(
        self, tmp_path: Path
    ) -> None:
        """The end of an agent is a phase; `terminate` forgets the agent."""

        async def case(stage: PlatformStage) -> None:
            adapter = stage.adapter()
            names = await self._launch(adapter, 1, 2)
            await self._wait(adapter, lambda agents: _running(agents) == names)
            await stage.end_agent(agent_name(1))
            await self._wait(adapter, lambda agents: _ended(agents) == {agent_name(1)})
            assert _live(await adapter.agents()) == {agent_name(2)}
            await adapter.terminate([agent_name(1)])
            assert {agent.name for agent in await adapter.agents()} == {agent_name(2)}

        self._run(case, tmp_path)

    def test_end_of_an_agent_wakes_the_wait_for_changes(self, tmp_path: Path) -> None:
        """`wait_changed` returns soon after an agent has ended."""

        async def case(stage: PlatformStage) -> None:
            adapter = stage.adapter()
            names = await self._launch(adapter, 1)
            await self._wait(adapter, lambda agents: _running(agents) == names)
            await stage.end_agent(agent_name(1))
            while _ended(await adapter.agents()) != names:
                await adapter.wait_changed()

        self._run(case, tmp_path)

    def test_new_adapter_finds_the_agents_of_a_killed_one(self, tmp_path: Path) -> None:
        """A fleet that was killed launches none of its agents twice and ends them all."""

        async def case(stage: PlatformStage) -> None:
            names = await self._launch(stage.adapter(), 1, 2)
            second = stage.adapter()
            await second.prepare()
            assert {agent.name for agent in await second.agents()} == names
            assert await second.launch([agent_order(agent_name(1))]) == []
            await self._wait(second, lambda agents: _running(agents) == names)
            await second.terminate(sorted(names))
            assert await second.agents() == []

        self._run(case, tmp_path)

    def test_closed_adapter_leaves_its_agents(self, tmp_path: Path) -> None:
        """`aclose` releases connections only, and may be repeated."""

        async def case(stage: PlatformStage) -> None:
            first = stage.adapter()
            names = await self._launch(first, 1)
            await self._wait(first, lambda agents: _running(agents) == names)
            await first.aclose()
            await first.aclose()
            second = stage.adapter()
            await second.prepare()
            await self._wait(second, lambda agents: _running(agents) == names)

        self._run(case, tmp_path)

    def test_clean_leaves_nothing_of_the_pool(self, tmp_path: Path) -> None:
        """`clean` ends all agents and may be repeated; the pool can be used again."""

        async def case(stage: PlatformStage) -> None:
            adapter = stage.adapter()
            await self._launch(adapter, 1, 2)
            await adapter.clean()
            await adapter.clean()
            assert await adapter.agents() == []
            assert await self._launch(adapter, 3) == {agent_name(3)}

        self._run(case, tmp_path)

    def test_other_pools_and_installations_are_left_alone(self, tmp_path: Path) -> None:
        """Adapters list, end and remove agents of their own pool and installation only."""

        async def case(stage: PlatformStage) -> None:
            ours = stage.adapter()
            await self._launch(ours, 1)
            for pool, installation in ((OTHER_POOL, INSTALLATION), (POOL, OTHER_INSTALLATION)):
                other = stage.adapter(pool, installation)
                await other.prepare()
                assert await other.agents() == []
                await other.clean()
            assert _live(await ours.agents()) == {agent_name(1)}
            longer = stage.adapter(OTHER_POOL)
            named_alike = agent_name(1, OTHER_POOL)
            assert await longer.launch([agent_order(named_alike)]) == []
            await ours.clean()
            assert _live(await longer.agents()) == {named_alike}
            if isinstance(ours, PlatformCleaner):
                left = await ours.leftovers()
                names = {one.pool: one.agents for one in left}
                assert names == {OTHER_POOL: (str(named_alike),)}
                await longer.clean()
                await ours.clean_rest()
                assert await ours.leftovers() == []

        self._run(case, tmp_path)

    async def _launch(self, adapter: PlatformAdapter, *numbers: int) -> set[AgentName]:
        """Launch agents of the adapter's pool in one call; return their names."""
        await adapter.prepare()
        names = [agent_name(number) for number in numbers]
        assert await adapter.launch([agent_order(name) for name in names]) == []
        return set(names)

    async def _wait(
        self, adapter: PlatformAdapter, holds: Callable[[list[PlatformAgent]], bool]
    ) -> None:
        """Wait until the list of agents has a property."""
        while not holds(await adapter.agents()):
            try:
                await asyncio.wait_for(adapter.wait_changed(), _LOOK_EVERY_S)
            except TimeoutError:
                continue

    def _run(self, case: Callable[[PlatformStage], Awaitable[None]], folder: Path) -> None:
        async def run() -> None:
            async with asyncio.timeout(self.limit_s), self.open_stage(folder) as stage:
                await case(stage)

        asyncio.run(run())


def _live(agents: Iterable[PlatformAgent]) -> set[AgentName]:
    return {agent.name for agent in agents if agent.phase in _LIVE}


def _running(agents: Iterable[PlatformAgent]) -> set[AgentName]:
    return {agent.name for agent in agents if agent.phase is AgentPhase.RUNNING}


def _ended(agents: Iterable[PlatformAgent]) -> set[AgentName]:
    return {agent.name for agent in agents if agent.phase is AgentPhase.ENDED}
