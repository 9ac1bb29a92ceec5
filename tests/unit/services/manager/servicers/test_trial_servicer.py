from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_proto.trial.v1 import trial_service_pb2 as pb
from nni_wire.values import from_value, to_value
from svc_common.errors import NotFoundError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.servicers.trial_servicer import TrialServicer
from tests.unit.services.manager.world import World, hold, world_on

NO_CONTEXT = cast("Any", None)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


@pytest.fixture
async def experiment_id(world: World) -> str:
    """An experiment whose five trials have succeeded."""
    made = await world.create()
    await world.wait_for_state(made, experiment_pb2.EXPERIMENT_STATE_DONE)
    return made


async def test_lists_are_filtered_ordered_and_paged(world: World, experiment_id: str) -> None:
    servicer = TrialServicer(world.manager.trials)
    request = pb.ListTrialsRequest(
        experiment_id=experiment_id,
        states=[trial_pb2.TRIAL_STATE_SUCCEEDED],
        with_result=True,
        order=pb.TRIAL_ORDER_METRIC,
        descending=True,
        page_size=2,
    )

    page = await servicer.ListTrials(request, NO_CONTEXT)

    assert [from_value(one.final_metric.value) for one in page.trials] == [4, 3]
    assert page.total == 5
    assert page.next_page_token


async def test_a_trial_its_metrics_and_counts_are_returned(
    world: World, experiment_id: str
) -> None:
    servicer = TrialServicer(world.manager.trials)
    (first, *_) = (await world.manager.trials.list(experiment_id)).items

    got = await servicer.GetTrial(
        pb.GetTrialRequest(experiment_id=experiment_id, trial_id=first.id), NO_CONTEXT
    )
    metrics = await servicer.ListMetrics(
        pb.ListMetricsRequest(experiment_id=experiment_id, trial_id=first.id), NO_CONTEXT
    )
    counts = await servicer.CountTrials(
        pb.CountTrialsRequest(experiment_id=experiment_id), NO_CONTEXT
    )

    assert got.trial == first
    assert len(metrics.metrics) == 2
    assert dict(counts.counts) == {"SUCCEEDED": 5}


async def test_an_explanation_names_the_outcome(world: World, experiment_id: str) -> None:
    servicer = TrialServicer(world.manager.trials)
    (first, *_) = (await world.manager.trials.list(experiment_id)).items

    explained = await servicer.ExplainTrial(
        pb.ExplainTrialRequest(experiment_id=experiment_id, trial_id=first.id), NO_CONTEXT
    )

    assert explained.verdict == pb.VERDICT_SUCCEEDED


async def test_an_added_trial_gets_a_parameter_id_of_its_own(tmp_path: Path) -> None:
    async with InMemoryBus() as bus, world_on(bus, tmp_path, hold) as world:
        experiment_id = await world.create()
        await world.agent.holds(2)

        added = await TrialServicer(world.manager.trials).AddTrial(
            pb.AddTrialRequest(experiment_id=experiment_id, parameters=to_value({"x": 7})),
            NO_CONTEXT,
        )

        actor = await world.manager.registry.find(experiment_id)
        assert list(actor.experiment.custom_queue) == [added.parameter_id]


async def test_an_unknown_trial_cannot_be_killed(world: World, experiment_id: str) -> None:
    with pytest.raises(NotFoundError):
        await TrialServicer(world.manager.trials).KillTrial(
            pb.KillTrialRequest(experiment_id=experiment_id, trial_id="none1"), NO_CONTEXT
        )
