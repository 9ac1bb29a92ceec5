"""Conformance suite of platform adapters: adapters that break one rule of the contract fail it."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from svc_trial_runner.fleet.adapters.memory import InMemoryPlatform, InMemoryPlatformAdapter
from svc_trial_runner.fleet.domain.agents import (
    AgentName,
    AgentOrder,
    AgentPhase,
    LaunchFailure,
    PlatformAgent,
    PlatformProblem,
)
from svc_trial_runner.fleet.domain.leftovers import Leftover
from svc_trial_runner.fleet.ports import PlatformAdapter
from svc_trial_runner.fleet.testing import (
    INSTALLATION,
    POOL,
    PlatformConformance,
    PlatformStage,
    agent_name,
    agent_order,
)

PROBLEM = PlatformProblem("partition", "must exist")


class Adapter(InMemoryPlatformAdapter):
    """Adapter that breaks no rule; `broken` is the one whose section breaks a rule."""

    broken = False

    def __init__(self, platform: InMemoryPlatform, installation: str, pool: str) -> None:
        super().__init__(platform, installation, pool)
        self.platform = platform
        self.pool = pool
        self.prepared = 0

    async def check(self) -> list[PlatformProblem]:
        return [PROBLEM] if self.broken else []


class MemoryStage(PlatformStage):
    """Stage of one in-memory platform."""

    def __init__(self, kind: type[Adapter]) -> None:
        self.kind = kind
        self.platform = InMemoryPlatform(capacity=9)

    def adapter(self, pool: str = POOL, installation: str = INSTALLATION) -> PlatformAdapter:
        return self.kind(self.platform, installation, pool)

    async def end_agent(self, name: AgentName) -> None:
        self.platform.set_phase(name, AgentPhase.ENDED)

    def broken_adapter(self) -> PlatformAdapter | None:
        adapter = self.kind(self.platform, INSTALLATION, POOL)
        adapter.broken = True
        return adapter


class Suite(PlatformConformance):
    """Suite of one kind of adapter."""

    __test__ = False
    capacity: ClassVar[int | None] = 9
    limit_s: ClassVar[float] = 5.0

    def __init__(self, kind: type[Adapter], limit_s: float = 5.0) -> None:
        self.kind = kind
        self.limit_s = limit_s  # type: ignore[misc] # of this suite alone

    def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
        del folder

        @asynccontextmanager
        async def stage() -> AsyncIterator[PlatformStage]:
            yield MemoryStage(self.kind)

        return stage()


CASES = [name for name in vars(PlatformConformance) if name.startswith("test_")]


class RefusesAll(Adapter):
    async def check(self) -> list[PlatformProblem]:
        return [PROBLEM]


class FindsNothing(Adapter):
    async def check(self) -> list[PlatformProblem]:
        return []


class NamesNoField(Adapter):
    async def check(self) -> list[PlatformProblem]:
        return [PlatformProblem("", "must exist")] if self.broken else []


class NamesNoRule(Adapter):
    async def check(self) -> list[PlatformProblem]:
        return [PlatformProblem("partition", "")] if self.broken else []


class StartsByCheck(Adapter):
    async def check(self) -> list[PlatformProblem]:
        if self.broken:
            await self.launch([agent_order(agent_name(1))])
        return await super().check()


class StartsByPrepare(Adapter):
    async def prepare(self) -> None:
        await self.launch([agent_order(agent_name(9))])


class PreparesOnce(Adapter):
    async def prepare(self) -> None:
        self.prepared += 1
        assert self.prepared < 2


class HasNoCapacity(Adapter):
    async def capacity(self) -> int | None:
        return None


class LaunchesNothing(Adapter):
    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        del orders
        return []


class LaunchesPending(Adapter):
    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        for order in orders:
            self.platform.set_phase(order.name, AgentPhase.PENDING)
        return []


class RefusesRepetitions(Adapter):
    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        known = [one.name for one in orders if one.name in self.platform.agents]
        return [*await super().launch(orders), *(LaunchFailure(name, "exists") for name in known)]


class StartsAnotherByRepetition(Adapter):
    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        if any(one.name in self.platform.agents for one in orders):
            self.platform.set_phase(agent_name(5, self.pool), AgentPhase.RUNNING)
        return await super().launch(orders)


class NeedsAnOrder(Adapter):
    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        return await super().launch(orders) or [
            LaunchFailure(agent_name(1), "no order") for _ in range(not orders)
        ]


class StartsWithoutAnOrder(Adapter):
    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        return await super().launch(orders or [agent_order(agent_name(1))])


class TerminatesNothing(Adapter):
    async def terminate(self, names: Sequence[AgentName]) -> None:
        del names


class TerminatesAll(Adapter):
    async def terminate(self, names: Sequence[AgentName]) -> None:
        del names
        await self.clean()


class TerminatesOnce(Adapter):
    async def terminate(self, names: Sequence[AgentName]) -> None:
        assert all(name in self.platform.agents for name in names)
        await super().terminate(names)


class KeepsTerminated(Adapter):
    async def terminate(self, names: Sequence[AgentName]) -> None:
        for name in names:
            if name in self.platform.agents:
                self.platform.set_phase(name, AgentPhase.ENDED)


class ListsUnknownAsEnded(Adapter):
    async def terminate(self, names: Sequence[AgentName]) -> None:
        unknown = [name for name in names if name not in self.platform.agents]
        await super().terminate(names)
        for name in unknown:
            self.platform.set_phase(name, AgentPhase.ENDED)


class ForgetsEnded(Adapter):
    async def agents(self) -> list[PlatformAgent]:
        return [one for one in await super().agents() if one.phase is not AgentPhase.ENDED]


class NeverWakes(Adapter):
    async def wait_changed(self) -> None:
        raise AssertionError("the end of an agent is no change")


class ListsItsOwnLaunches(Adapter):
    def __init__(self, platform: InMemoryPlatform, installation: str, pool: str) -> None:
        super().__init__(platform, installation, pool)
        self.mine: set[AgentName] = set()

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        self.mine.update(order.name for order in orders)
        return await super().launch(orders)

    async def agents(self) -> list[PlatformAgent]:
        return [one for one in await super().agents() if one.name in self.mine]


class EndsAgentsByClose(Adapter):
    async def aclose(self) -> None:
        await self.clean()


class ClosesOnce(Adapter):
    async def aclose(self) -> None:
        self.prepared += 10
        assert self.prepared < 20


class CleansNothing(Adapter):
    async def clean(self) -> None:
        pass


class CleansOnce(Adapter):
    async def clean(self) -> None:
        assert await self.agents()
        await super().clean()


class StaysClean(Adapter):
    cleaned = False

    async def clean(self) -> None:
        self.cleaned = True
        await super().clean()

    async def launch(self, orders: Sequence[AgentOrder]) -> list[LaunchFailure]:
        if self.cleaned:
            return [LaunchFailure(order.name, "the pool is clean") for order in orders]
        return await super().launch(orders)


class ListsOtherInstallations(Adapter):
    async def agents(self) -> list[PlatformAgent]:
        return [one for one in self.platform.agents.values() if one.name.pool == self.pool]


class ListsPoolsNamedAlike(Adapter):
    async def agents(self) -> list[PlatformAgent]:
        found = self.platform.agents.values()
        return [one for one in found if one.name.pool.startswith(self.pool[:9])]


class CleansAllPools(Adapter):
    async def clean(self) -> None:
        self.platform.forget(list(self.platform.agents))


class CleansPoolsNamedAlike(Adapter):
    async def clean(self) -> None:
        names = [name for name in self.platform.agents if name.pool.startswith(self.pool)]
        self.platform.forget(names)


class FindsNoLeftovers(Adapter):
    async def leftovers(self) -> list[Leftover]:
        return []


class AlwaysHasLeftovers(Adapter):
    async def leftovers(self) -> list[Leftover]:
        return [Leftover("exp-suite-2", ("nni-0123abcd-exp-suite-2-1",))]


class CannotCleanTheRest(Adapter):
    async def clean_rest(self) -> None:
        raise AssertionError("the rest is in use")


def run(suite: Suite, case: str, folder: Path) -> None:
    test: Callable[[Path], None] = getattr(suite, case)
    test(folder)


@pytest.mark.parametrize("case", CASES)
def test_adapter_that_breaks_no_rule_passes(case: str, tmp_path: Path) -> None:
    run(Suite(Adapter), case, tmp_path)

    assert len(CASES) == 16


@pytest.mark.parametrize(
    ("kind", "case"),
    [
        (RefusesAll, "section_of_the_stage_has_no_problem"),
        (FindsNothing, "check_finds_a_broken_section_and_starts_nothing"),
        (NamesNoField, "check_finds_a_broken_section_and_starts_nothing"),
        (NamesNoRule, "check_finds_a_broken_section_and_starts_nothing"),
        (StartsByCheck, "check_finds_a_broken_section_and_starts_nothing"),
        (StartsByPrepare, "new_platform_has_no_agents"),
        (PreparesOnce, "prepare_may_be_repeated"),
        (HasNoCapacity, "capacity_is_the_platforms"),
        (LaunchesNothing, "launched_agents_are_listed"),
        (LaunchesPending, "launched_agents_are_listed"),
        (RefusesRepetitions, "second_launch_of_an_order_starts_nothing"),
        (StartsAnotherByRepetition, "second_launch_of_an_order_starts_nothing"),
        (NeedsAnOrder, "launch_of_no_order_does_nothing"),
        (StartsWithoutAnOrder, "launch_of_no_order_does_nothing"),
        (TerminatesNothing, "terminated_agents_are_gone_and_the_others_stay"),
        (TerminatesAll, "terminated_agents_are_gone_and_the_others_stay"),
        (TerminatesOnce, "terminated_agents_are_gone_and_the_others_stay"),
        (KeepsTerminated, "terminated_agents_are_gone_and_the_others_stay"),
        (TerminatesOnce, "agents_that_never_existed_may_be_terminated"),
        (ListsUnknownAsEnded, "agents_that_never_existed_may_be_terminated"),
        (ForgetsEnded, "agent_that_ended_is_listed_as_ended_until_it_is_terminated"),
        (KeepsTerminated, "agent_that_ended_is_listed_as_ended_until_it_is_terminated"),
        (ForgetsEnded, "end_of_an_agent_wakes_the_wait_for_changes"),
        (ListsItsOwnLaunches, "new_adapter_finds_the_agents_of_a_killed_one"),
        (RefusesRepetitions, "new_adapter_finds_the_agents_of_a_killed_one"),
        (TerminatesNothing, "new_adapter_finds_the_agents_of_a_killed_one"),
        (EndsAgentsByClose, "closed_adapter_leaves_its_agents"),
        (ClosesOnce, "closed_adapter_leaves_its_agents"),
        (CleansNothing, "clean_leaves_nothing_of_the_pool"),
        (CleansOnce, "clean_leaves_nothing_of_the_pool"),
        (StaysClean, "clean_leaves_nothing_of_the_pool"),
        (ListsOtherInstallations, "other_pools_and_installations_are_left_alone"),
        (ListsPoolsNamedAlike, "other_pools_and_installations_are_left_alone"),
        (CleansAllPools, "other_pools_and_installations_are_left_alone"),
        (CleansPoolsNamedAlike, "other_pools_and_installations_are_left_alone"),
        (FindsNoLeftovers, "other_pools_and_installations_are_left_alone"),
        (AlwaysHasLeftovers, "other_pools_and_installations_are_left_alone"),
        (CannotCleanTheRest, "other_pools_and_installations_are_left_alone"),
    ],
)
def test_adapter_that_breaks_a_rule_fails(kind: type[Adapter], case: str, tmp_path: Path) -> None:
    hangs = kind in {LaunchesPending, ForgetsEnded, EndsAgentsByClose}
    suite = Suite(kind, 0.05 if hangs else 5.0)

    with pytest.raises(TimeoutError if hangs else AssertionError):
        run(suite, f"test_{case}", tmp_path)


def test_platform_without_rules_need_not_have_a_broken_section(tmp_path: Path) -> None:
    class Ruleless(MemoryStage):
        def broken_adapter(self) -> PlatformAdapter | None:
            return PlatformStage.broken_adapter(self)

    class RulelessSuite(Suite):
        def open_stage(self, folder: Path) -> AbstractAsyncContextManager[PlatformStage]:
            del folder

            @asynccontextmanager
            async def stage() -> AsyncIterator[PlatformStage]:
                yield Ruleless(FindsNothing)

            return stage()

    stage = Ruleless(Adapter)
    run(
        RulelessSuite(FindsNothing),
        "test_check_finds_a_broken_section_and_starts_nothing",
        tmp_path,
    )

    assert stage.broken_adapter() is None


def test_order_of_the_suite_has_one_slot_and_a_user_of_its_own() -> None:
    order = agent_order(agent_name(3))

    assert (order.slots, order.credentials.bus_user) == (1, "user-3")
    assert order.name == AgentName("0123abcd", "exp-suite", 3)
