"""One actor: rounds, commands, waits for states, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from google.protobuf import duration_pb2

from nni_proto.runner.v1 import pool_pb2
from nni_wire.values import from_value
from svc_common import subjects
from svc_common.clock import SystemClock
from svc_common.errors import AbortedError, InvalidArgumentError, LostOwnershipError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.domain.agent_limits import AgentLimits
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.inputs import AgentSilent, RecordedCommand, Stop, Update
from svc_manager.domain.scheduling import COUNT_EVERY_MS
from svc_manager.domain.trial import TrialState
from svc_manager.usecases.activation import ReopenRequest
from svc_manager.usecases.experiments import ConfigChange
from tests.unit.services.manager.world import PATIENCE_S, World, hold, manager_on, world_on


class SteppedClock(SystemClock):
    """Clock of this machine whose time of day the test sets ahead or back."""

    step = timedelta()

    def now(self) -> datetime:
        return super().now() + self.step


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SteppedClock:
    """Clock of the managers that the test starts."""
    clock = SteppedClock()
    monkeypatch.setattr("svc_manager.app.SystemClock", lambda: clock)
    return clock


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path, hold) as made:
        yield made


@pytest.fixture
async def actor(world: World) -> ExperimentActor:
    """Actor of an experiment with two running trials."""
    experiment_id = await world.create()
    await world.agent.holds(2)
    found = await world.manager.registry.find(experiment_id)
    async with asyncio.timeout(PATIENCE_S):
        while found.experiment.counts[TrialState.RUNNING] < 2:
            await found.next_change.wait()
    return found


def update(concurrency: int) -> RecordedCommand:
    return RecordedCommand(Update(trial_concurrency=concurrency), "", "Test")


async def test_a_command_is_in_the_log_when_submit_returns(
    world: World, actor: ExperimentActor
) -> None:
    await actor.submit(update(3))

    last = await world.bus.events.last(actor.id)
    assert last is not None
    assert last.sequence == actor.sequence
    assert actor.experiment.budget.trial_concurrency == 3


async def test_commands_of_one_round_share_one_append(actor: ExperimentActor) -> None:
    before = actor.experiment.revision

    await asyncio.gather(*(actor.submit(update(n)) for n in (3, 4, 5)))

    assert actor.experiment.revision == before + 3
    assert actor.experiment.budget.trial_concurrency == 5


async def test_a_refused_command_leaves_the_others_of_its_round(actor: ExperimentActor) -> None:
    results = await asyncio.gather(
        actor.submit(update(0)), actor.submit(update(4)), return_exceptions=True
    )

    assert isinstance(results[0], InvalidArgumentError)
    assert results[1] is None
    assert actor.experiment.budget.trial_concurrency == 4


async def test_a_notification_is_decided_in_the_next_round(actor: ExperimentActor) -> None:
    change = actor.next_change

    actor.notify(AgentSilent("agent-1"))
    async with asyncio.timeout(PATIENCE_S):
        await change.wait()

    assert actor.experiment.counts[TrialState.UNKNOWN] == 2


async def test_a_wait_for_the_present_state_returns_at_once(actor: ExperimentActor) -> None:
    async with asyncio.timeout(PATIENCE_S):
        await actor.wait_for_state({ExperimentState.RUNNING})

    assert actor.experiment.state is ExperimentState.RUNNING


async def test_a_wait_sees_states_that_pass_within_one_round(
    world: World, actor: ExperimentActor
) -> None:
    waiting = asyncio.ensure_future(actor.wait_for_state({ExperimentState.STOPPING}))
    await asyncio.sleep(0)

    await actor.submit(RecordedCommand(Stop(), "", "Test"))

    async with asyncio.timeout(PATIENCE_S):
        await waiting
        await actor.wait_for_state({ExperimentState.STOPPED})
    assert not world.agent.live()


async def test_a_stopped_actor_refuses_commands_and_ends_its_waits(actor: ExperimentActor) -> None:
    waiting = asyncio.ensure_future(actor.wait_for_state({ExperimentState.DONE}))
    await asyncio.sleep(0)

    actor.request_stop()

    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(AbortedError, match="closed here"):
            await waiting
        await actor.ended()
    with pytest.raises(AbortedError, match="being closed here"):
        await actor.submit(update(3))
    assert not actor.alive


async def test_a_writer_that_came_first_ends_the_actor(
    world: World, actor: ExperimentActor
) -> None:
    last = await world.bus.events.last(actor.id)
    assert last is not None
    await world.bus.events.append(
        actor.id, b"", expected_sequence=last.sequence, epoch=actor.epoch + 1, append_id="other"
    )

    async with asyncio.timeout(PATIENCE_S):
        with pytest.raises(LostOwnershipError):
            await actor.submit(update(3))
        await actor.ended()

    assert not actor.alive


async def test_the_view_shows_the_state_for_clients(actor: ExperimentActor) -> None:
    view = actor.view()

    assert view.id == actor.id
    assert dict(view.trial_counts) == {"RUNNING": 2}
    assert actor.bus_trouble == ""


HOUR = timedelta(hours=1)


async def limited(world: World) -> ExperimentActor:
    """Return the actor of a new experiment that may take an hour and has a running trial."""
    limit = duration_pb2.Duration()
    limit.FromTimedelta(HOUR)
    experiment_id = await world.create(trial_concurrency=1, max_experiment_duration=limit)
    await world.agent.holds(1)
    found = await world.manager.registry.find(experiment_id)
    async with asyncio.timeout(PATIENCE_S):
        while found.experiment.counts[TrialState.RUNNING] < 1:
            await found.next_change.wait()
    return found


@pytest.mark.parametrize("step", [2 * HOUR, -2 * HOUR])
async def test_step_of_the_clock_neither_ends_an_experiment_nor_prolongs_it(
    tmp_path: Path, clock: SteppedClock, step: timedelta
) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path, hold) as world:
        actor = await limited(world)
        before_ms = actor.now_ms()

        clock.step = step
        await actor.submit(update(2))

        assert actor.experiment.state is ExperimentState.RUNNING
        assert 0 <= actor.view().execution_time.ToTimedelta().total_seconds() < PATIENCE_S
        assert actor.now_ms() >= before_ms


@pytest.mark.parametrize("step", [2 * HOUR, -2 * HOUR])
async def test_manager_that_starts_with_another_time_goes_on(
    tmp_path: Path, clock: SteppedClock, step: timedelta
) -> None:
    async with InMemoryBus() as bus:
        async with world_on(bus, tmp_path, hold) as world:
            actor = await limited(world)
            experiment_id, before_ms = actor.id, actor.experiment.logged_at_ms
            actor.request_stop()
            await actor.ended()
        clock.step = step
        async with world_on(bus, tmp_path, hold) as world:
            actor = await world.manager.registry.find(experiment_id)
            await actor.submit(update(2))

            spent_s = actor.view().execution_time.ToTimedelta().total_seconds()

            assert actor.experiment.state is ExperimentState.RUNNING
            assert spent_s < COUNT_EVERY_MS / 1000 + PATIENCE_S
            assert actor.now_ms() >= before_ms


@pytest.fixture
async def remote_world(tmp_path: Path) -> AsyncIterator[World]:
    """World with a platform besides local."""
    async with (
        InMemoryBus() as bus,
        world_on(bus, tmp_path, platforms=["local", "elsewhere"]) as made,
    ):
        yield made


async def need_with(world: World, experiment_id: str, **fields: object) -> pool_pb2.PoolNeed:
    """Wait until the need of an experiment's pool has these fields; return it."""
    subject = subjects.pool_need_subject(f"exp-{experiment_id}")
    async with (
        asyncio.timeout(PATIENCE_S),
        aclosing(world.bus.last_values.follow(subject)) as followed,
    ):
        async for value in followed:
            need = pool_pb2.PoolNeed.FromString(value.payload)
            if all(getattr(need, name) == field for name, field in fields.items()):
                return need
    raise AssertionError("the bus was closed")


async def test_need_of_a_pool_follows_its_trials(remote_world: World) -> None:
    experiment_id = await remote_world.create_on("elsewhere", trial_concurrency=3)

    need = await need_with(remote_world, experiment_id, waiting_count=3)

    assert (need.running_count, need.concurrency, need.closed) == (0, 3, False)
    assert [one.platform for one in need.platforms] == ["elsewhere"]
    assert need.log_sequence > 0


async def test_need_closes_with_the_experiment_and_opens_again(remote_world: World) -> None:
    experiment_id = await remote_world.create_on("elsewhere")
    await remote_world.experiments.stop(experiment_id)
    closed = await need_with(remote_world, experiment_id, closed=True)

    await remote_world.experiments.resume(ReopenRequest(experiment_id))

    opened = await need_with(remote_world, experiment_id, closed=False)
    assert opened.log_sequence > closed.log_sequence


async def test_need_is_published_again_by_the_next_manager(remote_world: World) -> None:
    experiment_id = await remote_world.create_on("elsewhere")
    before = await need_with(remote_world, experiment_id, waiting_count=2)
    await remote_world.manager.registry.aclose()
    await remote_world.bus.last_values.delete(subjects.pool_need_subject(before.pool))

    async with manager_on(
        remote_world.bus,
        remote_world.folder,
        remote_world.listeners,
        platforms=["local", "elsewhere"],
    ):
        again = await need_with(remote_world, experiment_id, waiting_count=2)

    assert again.platforms == before.platforms


async def test_need_has_changed_limits_also_after_a_restart_of_the_manager(
    remote_world: World,
) -> None:
    experiment_id = await remote_world.create_on(
        "elsewhere", options={"maxAgents": 2, "maxAgentTime": "1h"}
    )
    before = await need_with(remote_world, experiment_id, waiting_count=2)
    change = ConfigChange(agent_limits=AgentLimits(max_agents=8))
    changed = await remote_world.experiments.update(experiment_id, change)
    expected = pool_pb2.PoolLimits(max_agents=8)
    expected.max_agent_time.seconds = 3600
    await need_with(remote_world, experiment_id, limits=expected)
    await remote_world.manager.registry.aclose()
    await remote_world.bus.last_values.delete(subjects.pool_need_subject(before.pool))

    async with manager_on(
        remote_world.bus,
        remote_world.folder,
        remote_world.listeners,
        platforms=["local", "elsewhere"],
    ):
        again = await need_with(remote_world, experiment_id, limits=expected)

    assert (before.limits.max_agents, again.limits.max_agents) == (2, 8)
    [service] = changed.config.training_services
    assert from_value(service.options) == {"maxAgents": 8, "maxAgentTime": "1h"}
    assert changed.revision == 1


async def test_summary_of_a_stopped_experiment_is_written_after_its_need_is_closed(
    remote_world: World,
) -> None:
    experiment_id = await remote_world.create_on("elsewhere")
    await remote_world.experiments.stop(experiment_id)
    actor = await remote_world.manager.registry.find(experiment_id)
    async with asyncio.timeout(PATIENCE_S):
        await actor.wait_for_effects()

    subject = subjects.pool_need_subject(f"exp-{experiment_id}")
    last = await remote_world.bus.last_values.read(subject)
    assert [pool_pb2.PoolNeed.FromString(one.payload).closed for one in last] == [True]


async def test_local_experiment_has_no_need(world: World, actor: ExperimentActor) -> None:
    del actor

    assert await world.bus.last_values.read(subjects.ALL_POOL_NEEDS) == []
