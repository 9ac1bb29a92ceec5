from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from nni_proto.experiment.v1 import study_service_pb2 as pb
from nni_proto.trial.v1 import trial_pb2
from nni_wire.values import from_value, to_value
from svc_common.messaging.memory import InMemoryBus
from svc_manager.servicers.study_servicer import StudyServicer
from tests.unit.services.manager.usecases.shared_study import create_study
from tests.unit.services.manager.world import World, world_on

NO_CONTEXT = cast("Any", None)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


async def ask(servicer: StudyServicer, study: str, **fields: Any) -> pb.AskTrialResponse:
    request = pb.AskTrialRequest(
        experiment_id=study, request_id="ask-1", caller_id="caller-1", **fields
    )
    return await servicer.AskTrial(request, NO_CONTEXT)


async def test_a_trial_is_asked_for_renewed_and_ended(world: World) -> None:
    study = await create_study(world)
    servicer = StudyServicer(world.manager.shared_studies)

    asked = await ask(servicer, study)
    held = pb.HeldTrial(trial_id=asked.trial.id, attempt=asked.attempt)
    renewed = await servicer.RenewLeases(
        pb.RenewLeasesRequest(experiment_id=study, caller_id="caller-1", trials=[held]), NO_CONTEXT
    )
    await servicer.TellTrial(
        pb.TellTrialRequest(
            experiment_id=study, trial_id=asked.trial.id, attempt=1, value=to_value(2)
        ),
        NO_CONTEXT,
    )

    assert asked.lease.seconds == renewed.lease.seconds == 60
    assert list(renewed.lost_trial_ids) == []
    trial = await world.manager.trials.get(study, asked.trial.id)
    assert from_value(trial.final_metric.value) == 2


@pytest.mark.parametrize(
    ("stopped", "state"),
    [(False, trial_pb2.TRIAL_STATE_FAILED), (True, trial_pb2.TRIAL_STATE_EARLY_STOPPED)],
)
async def test_a_trial_without_a_result_has_failed_or_was_stopped(
    world: World, *, stopped: bool, state: int
) -> None:
    study = await create_study(world)
    servicer = StudyServicer(world.manager.shared_studies)
    asked = await ask(servicer, study, parameters=to_value({"x": 3}))

    await servicer.TellTrial(
        pb.TellTrialRequest(
            experiment_id=study, trial_id=asked.trial.id, attempt=1, failure="NaN", stopped=stopped
        ),
        NO_CONTEXT,
    )

    trial = await world.manager.trials.get(study, asked.trial.id)
    assert from_value(trial.parameters) == {"x": 3}
    assert trial.state == state
    assert trial.end.detail.startswith("its caller ")
    assert trial.end.detail.endswith(": NaN")
