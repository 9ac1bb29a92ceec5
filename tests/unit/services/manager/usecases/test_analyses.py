"""Requests of analyses to the dispatcher, and their results."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from nni_wire.values import from_value, to_value
from svc_common.errors import InvalidArgumentError, UnavailableError
from svc_common.messaging.memory import InMemoryBus
from svc_common.storage.directory import DirectoryBlobStore
from svc_manager.actors.experiment_actor import ExperimentActor
from svc_manager.blobs.large_values import LargeValues
from svc_manager.usecases.analyses import Analyses, ConstraintChecker
from svc_manager.usecases.experiments import ConfigChange
from tests.unit.services.manager.world import World, world_on

DONE = experiment_pb2.EXPERIMENT_STATE_DONE
CONSTRAINED = {"x": {"_type": "randint", "_value": [0, 9]}, "_constraints": ["x < 5"]}


class RecordingAnalyst:
    """`Analyst` that remembers what it was asked; smaller is better."""

    def __init__(self, *, away: bool = False) -> None:
        self.measured: list[pb.MeasureImportanceRequest] = []
        self.fronts: list[pb.FindParetoFrontRequest] = []
        self._away = away

    async def importance(
        self, request: pb.MeasureImportanceRequest
    ) -> pb.MeasureImportanceResponse:
        self.measured.append(request)
        return pb.MeasureImportanceResponse(outcomes=len(request.outcomes))

    async def front(self, request: pb.FindParetoFrontRequest) -> pb.FindParetoFrontResponse:
        self.fronts.append(request)
        best = min(request.outcomes, key=lambda outcome: float(from_value(outcome.metric)))
        return pb.FindParetoFrontResponse(trial_ids=[best.trial_id])

    async def broken(self, request: pb.CheckConfigurationsRequest) -> Sequence[str]:
        if self._away:
            raise UnavailableError("the dispatcher is away")
        points = [from_value(configuration) for configuration in request.configurations]
        return ["" if point["x"] < 5 else "x < 5" for point in points]


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as made:
        yield made


def values(world: World) -> LargeValues:
    return LargeValues(DirectoryBlobStore(world.folder / "nni" / "blobs"))


async def constrained(world: World) -> ExperimentActor:
    experiment_id = await world.create()
    await world.experiments.update(experiment_id, ConfigChange(search_space=to_value(CONSTRAINED)))
    return await world.manager.registry.find(experiment_id)


async def test_importance_is_learnt_from_the_trials_with_results(world: World) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)
    analyst = RecordingAnalyst()

    result = await Analyses(world.manager.registry, values(world), analyst).importance(
        experiment_id
    )

    (request,) = analyst.measured
    assert result.found.outcomes == 5
    assert from_value(request.search_space)["x"]["_type"] == "randint"
    assert [from_value(outcome.parameters) for outcome in request.outcomes] == [
        {"x": number} for number in range(5)
    ]
    assert (result.objective.metric, result.objective.mode) == (
        "default",
        metric_pb2.OPTIMIZE_MODE_MINIMIZE,
    )


async def test_another_metric_may_be_asked_for(world: World) -> None:
    experiment_id = await world.create()
    analyst = RecordingAnalyst()

    analyses = Analyses(world.manager.registry, values(world), analyst)
    result = await analyses.importance(experiment_id, "cost")

    assert result.objective.metric == "cost"


async def test_front_gives_the_trials_themselves(world: World) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)
    analyst = RecordingAnalyst()
    wanted = [metric_pb2.Objective(metric="default", mode=metric_pb2.OPTIMIZE_MODE_MINIMIZE)]

    result = await Analyses(world.manager.registry, values(world), analyst).front(
        experiment_id, wanted
    )

    assert [from_value(trial.parameters) for trial in result.trials] == [{"x": 0}]
    assert result.finished == 5
    assert list(analyst.fronts[0].objectives) == wanted


async def test_front_of_more_trials_than_a_message_holds_is_that_of_the_fronts_of_pieces(
    world: World,
) -> None:
    experiment_id = await world.create()
    await world.wait_for_state(experiment_id, DONE)
    analyst = RecordingAnalyst()
    registry = world.manager.registry

    result = await Analyses(registry, values(world), analyst, outcomes_at_once=2).front(
        experiment_id
    )

    assert [from_value(trial.parameters) for trial in result.trials] == [{"x": 0}]
    assert [len(request.outcomes) for request in analyst.fronts] == [2, 2, 1, 3]


async def test_points_that_break_a_constraint_are_refused(world: World) -> None:
    actor = await constrained(world)
    points = ConstraintChecker(values(world), RecordingAnalyst())

    await points.check(actor, to_value({"x": 3}))
    with pytest.raises(InvalidArgumentError, match="must keep the constraint x < 5"):
        await points.check(actor, to_value({"x": 7}))


async def test_imports_are_warned_of(world: World) -> None:
    actor = await constrained(world)
    data = to_value([{"parameter": {"x": number}, "value": 1} for number in (1, 6, 8)])

    warnings = await ConstraintChecker(values(world), RecordingAnalyst()).warnings(actor, data)

    (warning,) = warnings
    assert warning.startswith("2 of 3 samples break a constraint of the search space")
    assert warning.endswith("x < 5")
    assert (
        await ConstraintChecker(values(world), RecordingAnalyst(away=True)).warnings(actor, data)
        == []
    )


async def test_without_constraints_the_dispatcher_is_not_asked(world: World) -> None:
    actor = await world.manager.registry.find(await world.create())

    await ConstraintChecker(values(world), RecordingAnalyst(away=True)).check(
        actor, to_value({"x": 7})
    )
