from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_wire.limits import VALUE_DEPTH_LIMIT
from nni_wire.values import from_value, to_value
from svc_common.clock import SystemClock
from svc_common.errors import AlreadyExistsError, FailedPreconditionError, InvalidArgumentError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.domain.callers import Claim
from svc_manager.usecases.activation import NewExperiment
from svc_manager.usecases.shared_studies import AskedTrial, SharedStudies
from tests.unit.services.manager.usecases.shared_study import create_study
from tests.unit.services.manager.world import (
    PATIENCE_S,
    InMemoryListeners,
    World,
    manager_on,
    world_on,
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


async def ask(studies: SharedStudies, study: str, request_id: str, caller: str) -> AskedTrial:
    async with asyncio.timeout(PATIENCE_S):
        return await studies.ask(study, request_id, caller)


async def test_two_callers_share_the_parameters_of_one_algorithm(world: World) -> None:
    study = await create_study(world)
    studies = world.manager.shared_studies

    first, second = await asyncio.gather(
        ask(studies, study, "ask-1", "caller-1"), ask(studies, study, "ask-2", "caller-2")
    )

    found = {from_value(asked.trial.parameters)["x"] for asked in (first, second)}
    assert found == {0, 1}
    assert {first.trial.runner_id, second.trial.runner_id} == {"caller-1", "caller-2"}
    assert first.lease_ms == 60_000
    assert world.agent.seen == []


async def test_a_told_result_is_that_of_the_trial(world: World) -> None:
    study = await create_study(world)
    studies = world.manager.shared_studies
    asked = await ask(studies, study, "ask-1", "caller-1")

    for _ in range(2):
        await studies.tell(study, asked.trial.id, asked.attempt, to_value(0.25))

    trial = await world.manager.trials.get(study, asked.trial.id)
    assert trial.state == trial_pb2.TRIAL_STATE_SUCCEEDED
    assert from_value(trial.final_metric.value) == 0.25
    with pytest.raises(InvalidArgumentError, match="told before"):
        await studies.tell(study, asked.trial.id, asked.attempt, to_value(0.5))


async def test_the_algorithm_learns_a_configuration_that_a_user_gave(world: World) -> None:
    study = await create_study(world)
    studies = world.manager.shared_studies
    async with asyncio.timeout(PATIENCE_S):
        asked = await studies.ask(study, "ask-1", "caller-1", to_value({"x": 7}))
    await studies.tell(study, asked.trial.id, asked.attempt, to_value(0.25))

    await ask(studies, study, "ask-2", "caller-1")  # its parameters come after the import

    assert world.dispatcher.imported == [[{"parameter": {"x": 7}, "value": 0.25}]]


async def test_a_result_that_makes_too_deep_a_sample_is_refused(world: World) -> None:
    study = await create_study(world)
    studies = world.manager.shared_studies
    async with asyncio.timeout(PATIENCE_S):
        asked = await studies.ask(study, "ask-1", "caller-1", to_value({"x": 7}))
    deep: Any = 0.25
    for _ in range(VALUE_DEPTH_LIMIT):
        deep = {"default": deep}

    with pytest.raises(InvalidArgumentError, match="nested at most"):
        await studies.tell(study, asked.trial.id, asked.attempt, to_value(deep))


async def test_an_ask_that_is_cancelled_takes_no_trial(world: World) -> None:
    study = await create_study(world)
    studies = world.manager.shared_studies
    await ask(studies, study, "ask-0", "caller-1")
    world.dispatcher.answering.clear()
    waiting = asyncio.create_task(studies.ask(study, "ask-1", "caller-1"))
    actor = await world.manager.registry.find(study)
    async with asyncio.timeout(PATIENCE_S):
        while not actor.experiment.algorithm.asked:
            change = actor.next_change
            if not actor.experiment.algorithm.asked:
                await change.wait()

    waiting.cancel()
    await asyncio.wait([waiting])
    world.dispatcher.answering.set()
    asked = await ask(studies, study, "ask-2", "caller-2")

    assert from_value(asked.trial.parameters) == {"x": 1}
    assert len(actor.experiment.trials) == 2


async def test_a_stop_refuses_waiting_callers(world: World) -> None:
    study = await create_study(world)
    studies = world.manager.shared_studies
    open_trial = await ask(studies, study, "ask-0", "caller-1")
    world.dispatcher.answering.clear()
    waiting = asyncio.create_task(studies.ask(study, "ask-1", "caller-1"))

    view = await world.experiments.stop(study)

    assert view.state == experiment_pb2.EXPERIMENT_STATE_STOPPED
    with pytest.raises(FailedPreconditionError, match="STOPPED"):
        await waiting
    with pytest.raises(FailedPreconditionError, match="SYS_CANCELED"):
        await studies.tell(study, open_trial.trial.id, 1, to_value(1))


async def test_the_next_manager_goes_on_with_open_trials(tmp_path: Path) -> None:
    async with InMemoryBus() as bus:
        async with world_on(bus, tmp_path) as world:
            study = await create_study(world)
            asked = await ask(world.manager.shared_studies, study, "ask-1", "caller-1")
        async with manager_on(bus, tmp_path, InMemoryListeners()) as manager:
            again = await ask(manager.shared_studies, study, "ask-1", "caller-1")
            claim = Claim(asked.trial.id, asked.attempt)
            renewed = await manager.shared_studies.renew(study, "caller-1", [claim])
            await manager.shared_studies.tell(study, asked.trial.id, asked.attempt, to_value(1))
            counts = await manager.trials.counts(study)

    assert again.trial.id == asked.trial.id
    assert renewed.lost_trial_ids == []
    assert counts == {"SUCCEEDED": 1}


async def test_renewal_names_the_trials_that_the_caller_does_not_hold(world: World) -> None:
    study = await create_study(world)
    studies = world.manager.shared_studies
    asked = await ask(studies, study, "ask-1", "caller-1")
    claim = Claim(asked.trial.id, asked.attempt)

    mine = await studies.renew(study, "caller-1", [claim])
    others = await studies.renew(study, "caller-2", [claim])

    assert (mine.lost_trial_ids, others.lost_trial_ids) == ([], [asked.trial.id])
    assert mine.lease_ms == 60_000


async def test_one_of_two_creations_with_an_id_is_refused(world: World) -> None:
    config = world.config()

    made = await asyncio.gather(
        *(
            world.experiments.create(
                NewExperiment(config, f"create-{number}", experiment_id="shared")
            )
            for number in range(3)
        ),
        return_exceptions=True,
    )

    refused = [one for one in made if isinstance(one, BaseException)]
    assert len(refused) == 2
    assert all(isinstance(one, AlreadyExistsError) for one in refused)


@pytest.mark.parametrize("text", ["", "x" * 65, "a\nb"])
async def test_ids_of_asks_have_a_limit(world: World, text: str) -> None:
    with pytest.raises(InvalidArgumentError, match="request_id must be"):
        await world.manager.shared_studies.ask("study", text, "caller-1")
    with pytest.raises(InvalidArgumentError, match="caller_id must be"):
        await world.manager.shared_studies.ask("study", "ask-1", text)


async def test_a_value_that_is_missing_is_refused(world: World) -> None:
    study = await create_study(world)
    studies = world.manager.shared_studies
    asked = await ask(studies, study, "ask-1", "caller-1")

    with pytest.raises(InvalidArgumentError, match="value must be given"):
        await studies.tell(study, asked.trial.id, 1, type(asked.trial.parameters)())
    with pytest.raises(InvalidArgumentError, match="parameters must be given"):
        await studies.ask(study, "ask-2", "caller-1", type(asked.trial.parameters)())
    with pytest.raises(InvalidArgumentError, match="trials must be at most"):
        await studies.renew(study, "caller-1", [Claim("x", 1)] * 1001)


class SteppedClock(SystemClock):
    """Clock of this machine whose time of day the test sets ahead."""

    step = timedelta()

    def now(self) -> datetime:
        return super().now() + self.step


async def test_a_step_of_the_clock_lapses_no_lease(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = SteppedClock()
    monkeypatch.setattr("svc_manager.app.SystemClock", lambda: clock)
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        study = await create_study(world)
        studies = world.manager.shared_studies
        asked = await ask(studies, study, "ask-1", "caller-1")

        clock.step = timedelta(hours=1)
        await ask(studies, study, "ask-2", "caller-1")

        trial = await world.manager.trials.get(study, asked.trial.id)
        assert trial.state == trial_pb2.TRIAL_STATE_RUNNING
