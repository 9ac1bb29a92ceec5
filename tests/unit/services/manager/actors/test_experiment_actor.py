"""One actor: rounds, commands, waits for states, and its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from google.protobuf import duration_pb2

from svc_common.clock import SystemClock
from svc_common.errors import AbortedError, InvalidArgumentError, LostOwnershipError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.inputs import AgentSilent, RecordedCommand, Stop, Update
from svc_manager.domain.scheduling import COUNT_EVERY_MS
from svc_manager.domain.trial import TrialState
from tests.unit.services.manager.world import PATIENCE_S, World, hold, world_on


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
