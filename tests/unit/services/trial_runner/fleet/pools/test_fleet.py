"""Fleet over the in-memory bus and in-memory platforms."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from structlog.testing import capture_logs

from nni_proto.runner.v1 import pool_pb2, task_pb2
from nni_wire.values import to_value
from svc_common import subjects
from svc_common.clock import Clock, ManualClock, SystemClock
from svc_common.messaging.memory import InMemoryBus
from svc_common.messaging.memory_broker import InMemoryBroker
from svc_trial_runner.fleet.adapters.memory import InMemoryPlatform, InMemoryPlatformAdapter
from svc_trial_runner.fleet.domain.agents import AgentName, AgentPhase
from svc_trial_runner.fleet.pools.fleet import Fleet
from svc_trial_runner.fleet.pools.pool_controller import FleetDependencies
from svc_trial_runner.fleet.ports import PlatformError
from tests.support.fleet_platforms import InMemoryCredentials, InMemoryPlatforms
from tests.support.fleet_pools import INSTALLATION, POOL, agent

LIMIT_S = 30.0


@dataclass
class World:
    """Bus, platforms and credentials, on which fleets run."""

    broker: InMemoryBroker = field(default_factory=InMemoryBroker)
    slurm: InMemoryPlatform = field(default_factory=InMemoryPlatform)
    credentials: InMemoryCredentials = field(default_factory=InMemoryCredentials)
    sequence: int = 0

    def __post_init__(self) -> None:
        self.bus = InMemoryBus(self.broker)
        self.opener = InMemoryPlatforms(INSTALLATION, {"slurm": self.slurm})

    @asynccontextmanager
    async def fleet(self, clock: Clock | None = None) -> AsyncIterator[Fleet]:
        """Run a fleet; at the end it is gone as if it were killed."""
        dependencies = FleetDependencies(
            INSTALLATION,
            InMemoryBus(self.broker),
            self.opener,
            self.credentials,
            clock or SystemClock(),
        )
        fleet = Fleet(dependencies)
        running = asyncio.ensure_future(fleet.run())
        try:
            yield fleet
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            await fleet.aclose()

    async def publish_need(
        self,
        waiting: int = 0,
        running: int = 0,
        *,
        closed: bool = False,
        platform: str = "slurm",
        idle_s: float = 60.0,
        pool: str = POOL,
        used_pool: str = "",
    ) -> None:
        self.sequence += 1
        message = pool_pb2.PoolNeed(
            pool=used_pool or pool,
            waiting_count=waiting,
            running_count=running,
            concurrency=8,
            closed=closed,
            log_sequence=self.sequence,
        )
        message.platforms.add(platform=platform, options=to_value({"slots": 1}))
        message.limits.idle.FromNanoseconds(int(idle_s * 1e9))
        subject = subjects.pool_need_subject(pool)
        await self.bus.last_values.publish(subject, message.SerializeToString())

    async def publish_definition(self, *, removed: bool = False, draining: bool = False) -> None:
        """Define the pool as one of the installation."""
        self.sequence += 1
        message = pool_pb2.PoolDefinition(
            pool=POOL, removed=removed, draining=draining, revision=self.sequence
        )
        message.platforms.add(platform="slurm", options=to_value({"slots": 1}))
        subject = subjects.pool_definition_subject(POOL)
        await self.bus.last_values.publish(subject, message.SerializeToString())

    def publish_presence(
        self, name: AgentName, trials: int = 0, *, draining: bool = False, leaving: bool = False
    ) -> None:
        held = [task_pb2.HeldTrial()] * trials
        message = task_pb2.RunnerPresence(trials=held, draining=draining, leaving=leaving)
        subject = subjects.presence_subject(str(name))
        self.bus.signals.publish(subject, message.SerializeToString())

    async def state(self, holds: Callable[[pool_pb2.PoolState], bool]) -> pool_pb2.PoolState:
        """Return the first published state of the pool that has a property."""
        subject = subjects.pool_state_subject(POOL)
        async with asyncio.timeout(LIMIT_S):
            async for value in self.bus.last_values.follow(subject):
                state = pool_pb2.PoolState.FromString(value.payload)
                if holds(state):
                    return state
        raise AssertionError("the bus was closed")


def numbers(state: pool_pb2.PoolState) -> list[int]:
    return [int(one.name.rpartition("-")[2]) for one in state.agents]


def has(*expected: int) -> Callable[[pool_pb2.PoolState], bool]:
    """Return whether a state has these agents, all confirmed by their platform."""
    launching = pool_pb2.POOL_AGENT_STATE_LAUNCHING
    return lambda state: (
        numbers(state) == list(expected) and all(one.state != launching for one in state.agents)
    )


@pytest.fixture
async def world() -> World:
    return World()


async def test_waiting_trials_get_agents_with_credentials(world: World) -> None:
    async with world.fleet():
        await world.publish_need(waiting=2)
        await world.state(has(1, 2))

        assert world.slurm.launches == [agent(1), agent(2)]
        assert set(world.credentials.valid) == {agent(1), agent(2)}


async def test_names_are_published_before_the_platform_is_asked(world: World) -> None:
    world.slurm.failure = None
    async with world.fleet():
        await world.publish_need(waiting=1)
        state = await world.state(lambda state: bool(state.agents))

    assert numbers(state) == [1]
    assert state.last_number == 1


async def test_killed_fleet_launches_none_of_its_agents_twice(world: World) -> None:
    async with world.fleet():
        await world.publish_need(waiting=2)
        await world.state(has(1, 2))
    async with world.fleet():
        await world.publish_need(waiting=3)
        await world.state(has(1, 2, 3))

    assert world.slurm.launches == [agent(1), agent(2), agent(3)]


async def test_numbers_are_not_used_again_when_the_platform_has_forgotten(world: World) -> None:
    async with world.fleet():
        await world.publish_need(waiting=2)
        await world.state(has(1, 2))
        await world.publish_need(closed=True)
        await world.state(lambda state: state.cleaned)
    async with world.fleet():
        await world.publish_need(waiting=1)
        await world.state(has(3))

    assert world.slurm.launches == [agent(1), agent(2), agent(3)]


async def test_closed_pool_leaves_nothing(world: World) -> None:
    async with world.fleet():
        await world.publish_need(waiting=2)
        await world.state(has(1, 2))
        world.publish_presence(agent(1))
        await world.publish_need(closed=True)
        state = await world.state(lambda state: state.cleaned)

        assert numbers(state) == []
        assert world.slurm.agents == {}
        assert world.credentials.valid == {}


async def test_pool_that_is_opened_again_is_served_again(world: World) -> None:
    async with world.fleet():
        await world.publish_need(waiting=1)
        await world.state(has(1))
        await world.publish_need(closed=True)
        await world.state(lambda state: state.cleaned)
        await world.publish_need(waiting=1)
        await world.state(has(2))

    assert world.slurm.launches == [agent(1), agent(2)]


async def test_failing_platform_is_shown_in_its_own_words(world: World) -> None:
    world.slurm.failure = PlatformError("slurmctld is down", "start it")
    async with world.fleet():
        await world.publish_need(waiting=1)
        state = await world.state(lambda state: bool(state.reason))

    assert state.reason == "slurm: slurmctld is down"
    assert state.remedy == "start it"
    assert state.HasField("next_launch_at")


async def test_unknown_platform_is_shown_and_other_pools_go_on(world: World) -> None:
    async with world.fleet():
        await world.publish_need(waiting=1, platform="nowhere", pool="exp-2")
        await world.publish_need(waiting=1)
        await world.state(has(1))

    assert world.slurm.launches == [agent(1)]


async def test_idle_agents_are_asked_to_drain_and_forgotten(world: World) -> None:
    orders = await world.bus.signals.subscribe(subjects.control_subject(str(agent(1))))
    async with world.fleet(), asyncio.timeout(LIMIT_S):
        await world.publish_need(waiting=1, idle_s=0.0)
        await world.state(has(1))
        world.publish_presence(agent(1), trials=1)
        await world.publish_need(running=1, idle_s=0.0)
        await world.state(
            lambda state: [one.state for one in state.agents] == [pool_pb2.POOL_AGENT_STATE_RUNNING]
        )
        await world.publish_need(idle_s=0.0)
        world.publish_presence(agent(1))
        order = task_pb2.RunnerControl.FromString((await anext(orders)).payload)
        assert order.WhichOneof("kind") == "drain_runner"

        world.publish_presence(agent(1), draining=True, leaving=True)
        world.slurm.set_phase(agent(1), AgentPhase.ENDED)
        await world.state(has())

    assert world.slurm.agents == {}
    assert world.credentials.valid == {}


async def test_messages_that_are_no_needs_change_nothing(world: World) -> None:
    async with world.fleet():
        for pool in ("exp-bad", "POOL"):
            subject = subjects.pool_need_subject(pool)
            await world.bus.last_values.publish(subject, b"\xff\xff")
        await world.publish_need(waiting=1)
        await world.state(has(1))

    assert world.slurm.launches == [agent(1)]


async def test_presences_of_other_installations_are_ignored(world: World) -> None:
    async with world.fleet():
        await world.publish_need(waiting=1)
        await world.state(has(1))
        world.publish_presence(AgentName("zzzzzzzz", POOL, 1), trials=1)
        world.bus.signals.publish(subjects.presence_subject("runner"), b"")
        world.publish_presence(agent(1))
        state = await world.state(
            lambda state: state.agents[0].state == pool_pb2.POOL_AGENT_STATE_RUNNING
        )

    assert numbers(state) == [1]


async def test_demands_of_several_experiments_feed_one_pool(world: World) -> None:
    async with world.fleet():
        await world.publish_need(waiting=1, pool="exp-one", used_pool=POOL)
        await world.publish_definition()
        await world.publish_need(waiting=2, pool="exp-two", used_pool=POOL)
        state = await world.state(has(1, 2, 3))

        assert state.pool == POOL
        assert world.slurm.launches == [agent(1), agent(2), agent(3)]


async def test_pool_of_the_installation_outlives_a_killed_fleet(world: World) -> None:
    async with world.fleet():
        await world.publish_definition()
        await world.publish_need(waiting=1, pool="exp-one", used_pool=POOL)
        await world.state(has(1))
    async with world.fleet():
        await world.publish_need(waiting=2, pool="exp-one", used_pool=POOL)
        await world.state(has(1, 2))

    assert world.slurm.launches == [agent(1), agent(2)]


async def test_removed_pool_is_cleaned_and_can_be_defined_again(world: World) -> None:
    async with world.fleet() as fleet:
        await world.publish_definition()
        await world.publish_need(waiting=1, pool="exp-one", used_pool=POOL)
        await world.state(has(1))
        await world.publish_definition(removed=True)
        await world.state(lambda state: state.cleaned)
        assert world.slurm.agents == {}
        assert fleet.pools == ()

        await world.publish_definition()
        await world.state(has(2))


async def test_damaged_definition_is_refused_and_the_fleet_goes_on(world: World) -> None:
    async with world.fleet():
        for payload in (b"\xff\xff", b""):
            subject = subjects.pool_definition_subject("Bad_Name")
            await world.bus.last_values.publish(subject, payload)
        await world.publish_definition()
        await world.publish_need(waiting=1, pool="exp-one", used_pool=POOL)
        state = await world.state(has(1))

    assert state.pool == POOL


async def request_cleaning(world: World) -> None:
    request = pool_pb2.PoolCheck(check_id="c1", pool="check-c1")
    request.cleaning.SetInParent()
    request.platforms.add(platform="slurm", options=to_value({}))
    request.deadline.FromDatetime(datetime.now(UTC) + timedelta(hours=1))
    subject = subjects.pool_check_subject("check-c1")
    await world.bus.last_values.publish(subject, request.SerializeToString())


async def test_pool_that_comes_while_it_is_cleaned_starts_its_agents_afterwards(
    world: World,
) -> None:
    world.slurm.set_phase(agent(1), AgentPhase.RUNNING)
    world.credentials.may_revoke.clear()
    async with asyncio.timeout(LIMIT_S), world.fleet() as fleet:
        await request_cleaning(world)
        await world.credentials.revoking.wait()
        await world.publish_need(waiting=1)
        while POOL not in fleet.pools:  # noqa: ASYNC110 - all happens in this loop
            await asyncio.sleep(0)
        for _ in range(50):  # more turns of the loop than a launch takes
            await asyncio.sleep(0)
        assert world.credentials.issued == []

        world.credentials.may_revoke.set()
        await world.state(has(1))

        assert set(world.credentials.valid) == {agent(1)}
        assert set(world.slurm.agents) == {agent(1)}


async def test_cleaning_leaves_alone_what_a_live_pool_has(world: World) -> None:
    gone = AgentName(INSTALLATION, "exp-gone", 1)
    world.slurm.set_phase(gone, AgentPhase.RUNNING)
    async with world.fleet():
        await world.publish_need(waiting=1)
        await world.state(has(1))
        await request_cleaning(world)
        subject = subjects.pool_problems_subject("check-c1")
        async with (
            asyncio.timeout(LIMIT_S),
            aclosing(world.bus.last_values.follow(subject)) as answers,
        ):
            answer = pool_pb2.PoolProblems.FromString((await anext(answers)).payload)

    left = {one.pool: (one.in_use, one.removed) for one in answer.leftovers}
    assert left == {POOL: (True, False), "exp-gone": (False, True)}
    assert gone not in world.slurm.agents
    assert len(world.slurm.agents) == 1


async def test_need_that_names_no_pool_is_of_the_pool_of_its_subject(world: World) -> None:
    message = pool_pb2.PoolNeed(waiting_count=1, concurrency=8, log_sequence=1)
    message.platforms.add(platform="slurm", options=to_value({"slots": 1}))
    async with world.fleet():
        await world.bus.last_values.publish(
            subjects.pool_need_subject(POOL), message.SerializeToString()
        )

        await world.state(has(1))

    assert world.slurm.launches == [agent(1)]


async def turns_of_the_loop() -> None:
    """Let the loop turn more often than a launch takes."""
    for _ in range(100):
        await asyncio.sleep(0)


async def test_pool_whose_control_has_failed_is_served_again_after_half_a_minute(
    world: World,
) -> None:
    clock = ManualClock()
    world.slurm.failure = PlatformError("x" * 9_000_000)  # its state is larger than a message
    async with asyncio.timeout(LIMIT_S), world.fleet(clock) as fleet:
        await world.publish_need(waiting=1)
        while not world.opener.opened:  # noqa: ASYNC110 - all happens in this loop
            await asyncio.sleep(0)
        await turns_of_the_loop()
        world.slurm.failure = None

        clock.advance(29.5)
        await turns_of_the_loop()
        early = list(world.slurm.launches)
        clock.advance(0.5)
        await world.state(has(1))

        assert early == []
        assert fleet.pools == (POOL,)


async def test_pool_that_is_clean_leaves_no_folder(world: World) -> None:
    async with world.fleet() as fleet:
        await world.publish_need(waiting=1)
        await world.state(has(1))
        await world.publish_need(closed=True)
        await world.state(lambda state: state.cleaned)
        await turns_of_the_loop()

        assert fleet.pools == ()
        assert world.opener.forgotten == [POOL]


async def test_pool_that_was_clean_before_a_restart_is_not_served_again(world: World) -> None:
    async with world.fleet():
        await world.publish_need(waiting=1)
        await world.state(has(1))
        await world.publish_need(closed=True)
        await world.state(lambda state: state.cleaned)
        await turns_of_the_loop()
    world.opener.opened.clear()
    async with world.fleet() as fleet:
        await turns_of_the_loop()

        assert fleet.pools == ()
    assert world.opener.opened == []


async def test_closed_fleet_serves_no_pool(world: World) -> None:
    async with world.fleet() as fleet:
        await fleet.aclose()
        await world.publish_need(waiting=1)
        await turns_of_the_loop()

        assert fleet.pools == ()
    assert world.slurm.launches == []


async def test_agent_that_was_silent_while_the_bus_was_away_is_not_replaced(world: World) -> None:
    clock = ManualClock()
    async with asyncio.timeout(LIMIT_S), world.fleet(clock):
        await world.publish_need(running=1)
        await world.state(has(1))
        world.publish_presence(agent(1), trials=1)
        await world.state(lambda state: state.agents[0].state == pool_pb2.POOL_AGENT_STATE_RUNNING)

        world.broker.stop()
        await turns_of_the_loop()
        clock.advance(3600.0)
        await turns_of_the_loop()
        world.broker.start()
        await world.publish_need(running=1)
        await world.state(lambda state: state.log_sequence == world.sequence)
        await turns_of_the_loop()

    assert world.slurm.launches == [agent(1)]


async def test_agent_that_stays_silent_after_the_return_of_the_bus_is_replaced(
    world: World,
) -> None:
    clock = ManualClock()
    async with asyncio.timeout(LIMIT_S), world.fleet(clock):
        await world.publish_need(running=1)
        await world.state(has(1))
        world.publish_presence(agent(1), trials=1)
        await turns_of_the_loop()
        world.broker.stop()
        await turns_of_the_loop()
        world.broker.start()
        await turns_of_the_loop()

        for _ in range(20):  # its silence has several steps
            clock.advance(120.0)
            await turns_of_the_loop()

    assert agent(2) in world.slurm.launches
    assert agent(1) not in world.slurm.agents


async def test_pool_that_was_closed_before_a_fleet_has_served_it_is_clean(world: World) -> None:
    await world.publish_need(closed=True)

    async with world.fleet() as fleet:
        await world.state(lambda state: state.cleaned)
        await turns_of_the_loop()

        assert fleet.pools == ()
    assert world.slurm.launches == []


async def test_pool_that_is_opened_again_while_no_fleet_runs_is_served(world: World) -> None:
    async with world.fleet():
        await world.publish_need(waiting=1)
        await world.state(has(1))
        await world.publish_need(closed=True)
        await world.state(lambda state: state.cleaned)
        await turns_of_the_loop()
    await world.publish_need(waiting=1)

    async with world.fleet():
        await world.state(has(2))

    assert world.slurm.launches == [agent(1), agent(2)]


async def test_control_that_has_failed_is_logged_and_its_adapters_are_closed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    async def close(adapter: InMemoryPlatformAdapter) -> None:
        closed.append(adapter)

    monkeypatch.setattr(InMemoryPlatformAdapter, "aclose", close)
    world.slurm.failure = PlatformError("x" * 9_000_000)  # its state is larger than a message
    with capture_logs() as lines:
        async with asyncio.timeout(LIMIT_S), world.fleet(ManualClock()):
            await world.publish_need(waiting=1)
            while not closed:  # noqa: ASYNC110 - all happens in this loop
                await asyncio.sleep(0)
            await turns_of_the_loop()

    assert len(world.opener.opened) == len(closed) == 1
    (line,) = (one for one in lines if one["log_level"] == "error")
    assert (line["event"], line["pool"]) == ("pool failed", POOL)


async def test_closed_fleet_leaves_no_task_and_no_adapter_open(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    async def close(adapter: InMemoryPlatformAdapter) -> None:
        closed.append(adapter)

    monkeypatch.setattr(InMemoryPlatformAdapter, "aclose", close)
    before = asyncio.all_tasks()
    async with world.fleet() as fleet:
        await world.publish_need(waiting=1)
        await world.state(has(1))
        opened = len(closed)
        await fleet.aclose()
        pools = fleet.pools

    assert (opened, len(closed), pools) == (0, 1, ())
    assert asyncio.all_tasks() == before
    assert list(world.slurm.agents) == [agent(1)]


async def test_pool_that_is_defined_again_by_a_clock_that_is_behind_is_served(
    world: World,
) -> None:
    async with world.fleet():
        await world.publish_need(waiting=1, pool="exp-one", used_pool=POOL)
        await world.publish_definition()
        await world.state(has(1))
        await world.publish_definition(removed=True)
        await world.state(lambda state: state.cleaned)
        await turns_of_the_loop()

        world.sequence = 0  # revisions are times of the manager's clock
        await world.publish_definition()
        await world.state(has(2))

    assert world.slurm.launches == [agent(1), agent(2)]


async def test_adapter_of_a_pool_that_is_clean_is_closed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = []

    async def close(adapter: InMemoryPlatformAdapter) -> None:
        closed.append(adapter)

    monkeypatch.setattr(InMemoryPlatformAdapter, "aclose", close)
    async with world.fleet():
        await world.publish_need(waiting=1)
        await world.state(has(1))
        await world.publish_need(closed=True)
        await world.state(lambda state: state.cleaned)
        await turns_of_the_loop()

    assert len(closed) == len(world.opener.opened) == 1


async def test_pool_that_was_clean_before_a_restart_is_not_cleaned_again(world: World) -> None:
    async with world.fleet():
        await world.publish_need(waiting=1)
        await world.state(has(1))
        await world.publish_need(closed=True)
        await world.state(lambda state: state.cleaned)
        await turns_of_the_loop()
    forgotten = list(world.opener.forgotten)
    async with world.fleet():
        await turns_of_the_loop()

    assert world.opener.forgotten == forgotten == [POOL]


async def test_check_in_progress_ends_with_the_fleet(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hang(_adapter: InMemoryPlatformAdapter) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(InMemoryPlatformAdapter, "clean_rest", hang)
    async with asyncio.timeout(LIMIT_S), world.fleet() as fleet:
        await request_cleaning(world)
        await begun.wait()
        before = ended.is_set()
        await fleet.aclose()
        assert (before, ended.is_set()) == (False, True)
