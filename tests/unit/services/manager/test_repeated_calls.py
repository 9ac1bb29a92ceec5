"""Every changing call of the manager, made twice: the second one changes nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest
from google.protobuf.message import Message

from nni_proto.experiment.v1 import experiment_pb2
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.trial.v1 import trial_service_pb2 as trial_pb
from nni_wire.values import to_value
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_common.messaging.memory import InMemoryBus
from svc_manager.servicers.experiment_servicer import Context, ExperimentServicer
from svc_manager.servicers.trial_servicer import TrialServicer
from tests.unit.services.manager.world import World, hold, world_on

RUNNING = experiment_pb2.EXPERIMENT_STATE_RUNNING
NO_CONTEXT = cast("Context", None)


@dataclass
class Face:
    """A manager as its callers see it, with one experiment."""

    world: World
    experiments: ExperimentServicer
    trials: TrialServicer
    experiment_id: str = ""
    trial_id: str = ""

    async def end(self) -> int:
        """Give the end of the experiment's log; 0 if there is none."""
        last = await self.world.bus.events.last(self.experiment_id)
        return 0 if last is None else last.sequence

    async def stop(self) -> None:
        await self.world.experiments.stop(self.experiment_id)


@pytest.fixture
async def face(tmp_path: Path) -> AsyncIterator[Face]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path, hold) as world:
        manager = world.manager
        made = Face(
            world,
            ExperimentServicer(manager.experiments, manager.agent_directory, manager.diagnosis),
            TrialServicer(manager.trials),
        )
        made.experiment_id = await world.create(max_trial_number=50)
        held = await world.agent.holds(2)
        await world.wait_for_state(made.experiment_id, RUNNING)
        made.trial_id = held[0].task.trial_id
        yield made


Call = Callable[[Face, str], Awaitable[Message]]


async def resume(face: Face, request_id: str) -> Message:
    return await face.experiments.ResumeExperiment(
        pb.ResumeExperimentRequest(request_id=request_id, experiment_id=face.experiment_id),
        NO_CONTEXT,
    )


async def view(face: Face, request_id: str) -> Message:
    return await face.experiments.ViewExperiment(
        pb.ViewExperimentRequest(request_id=request_id, experiment_id=face.experiment_id),
        NO_CONTEXT,
    )


async def stop(face: Face, request_id: str) -> Message:
    return await face.experiments.StopExperiment(
        pb.StopExperimentRequest(request_id=request_id, experiment_id=face.experiment_id),
        NO_CONTEXT,
    )


async def delete(face: Face, request_id: str) -> Message:
    return await face.experiments.DeleteExperiment(
        pb.DeleteExperimentRequest(request_id=request_id, experiment_id=face.experiment_id),
        NO_CONTEXT,
    )


async def update(face: Face, request_id: str) -> Message:
    return await face.experiments.UpdateExperiment(
        pb.UpdateExperimentRequest(
            request_id=request_id, experiment_id=face.experiment_id, max_trial_number=60
        ),
        NO_CONTEXT,
    )


async def import_data(face: Face, request_id: str) -> Message:
    return await face.experiments.ImportData(
        pb.ImportDataRequest(
            request_id=request_id,
            experiment_id=face.experiment_id,
            data=to_value([{"parameter": {"x": 1, "y": 2}, "value": 0.5}]),
        ),
        NO_CONTEXT,
    )


async def drain(face: Face, request_id: str) -> Message:
    return await face.experiments.DrainRunner(
        pb.DrainRunnerRequest(request_id=request_id, runner_id=face.world.agent.runner_id),
        NO_CONTEXT,
    )


async def kill(face: Face, request_id: str) -> Message:
    return await face.trials.KillTrial(
        trial_pb.KillTrialRequest(
            request_id=request_id, experiment_id=face.experiment_id, trial_id=face.trial_id
        ),
        NO_CONTEXT,
    )


async def add(face: Face, request_id: str) -> Message:
    return await face.trials.AddTrial(
        trial_pb.AddTrialRequest(
            request_id=request_id, experiment_id=face.experiment_id, parameters=to_value({"x": 7})
        ),
        NO_CONTEXT,
    )


ON_STOPPED = (resume, view, delete)
CALLS: tuple[Call, ...] = (
    *ON_STOPPED,
    *(stop, update, import_data, drain, kill, add),
)
ALL = {
    *("CreateExperiment", "ResumeExperiment", "ViewExperiment", "StopExperiment"),
    *("DeleteExperiment", "UpdateExperiment", "ImportData", "DrainRunner"),
    *("KillTrial", "AddTrial"),
}


def test_no_changing_call_is_left_out() -> None:
    services = [
        module.DESCRIPTOR.services_by_name[name]
        for module, name in ((pb, "ExperimentService"), (trial_pb, "TrialService"))
    ]

    changing = {
        method.name
        for service in services
        for method in service.methods
        if "request_id" in method.input_type.fields_by_name
    }

    assert changing == ALL
    assert len(CALLS) + 1 == len(ALL), "a creation has a test of its own"


def shown(answer: Message) -> dict[str, Any]:
    """Give what must be the same in both answers: not what time and agents go on changing."""
    return {
        field.name: value
        for field, value in answer.ListFields()
        if field.name not in {"experiment", "trial"}
    }


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.__name__)
async def test_a_repeated_call_changes_nothing_and_gets_the_same_answer(
    face: Face, call: Call
) -> None:
    if call in ON_STOPPED:
        await face.stop()
    first = await call(face, "req-1")
    recorded = await requests_in_log(face)

    second = await call(face, "req-1")

    assert shown(first) == shown(second)
    assert await requests_in_log(face) == recorded


async def requests_in_log(face: Face) -> int:
    """Give how many requests of users have been carried out."""
    if await face.end() == 0:
        return 0
    actor = await face.world.manager.registry.find(face.experiment_id)
    experiment = actor.experiment
    return len(experiment.requests) + experiment.revision + len(experiment.custom_ids)


async def test_a_repeated_creation_gives_the_same_experiment(face: Face) -> None:
    request = pb.CreateExperimentRequest(request_id="create-1", config=face.world.config())

    answers = [await face.experiments.CreateExperiment(request, NO_CONTEXT) for _ in range(3)]

    assert len({answer.experiment.id for answer in answers}) == 1
    assert len((await face.world.experiments.list()).items) == 2
    request.config.trial_concurrency += 1
    with pytest.raises(InvalidArgumentError, match="request_id must name one request only"):
        await face.experiments.CreateExperiment(request, NO_CONTEXT)


@pytest.mark.parametrize("call", [stop, update, import_data, kill, add])
async def test_the_id_of_one_request_is_refused_for_another(face: Face, call: Call) -> None:
    other = kill if call is not kill else add
    await other(face, "req-1")

    with pytest.raises(InvalidArgumentError, match="request_id must name one request only"):
        await call(face, "req-1")


async def test_a_second_identical_end_is_fine_and_a_different_one_is_an_error(face: Face) -> None:
    await kill(face, "req-1")
    (held,) = [one for one in face.world.agent.held.values() if one.task.trial_id == face.trial_id]
    await face.world.agent.exit(held)
    await ended(face)

    await kill(face, "req-1")
    with pytest.raises(FailedPreconditionError, match="is over"):
        await kill(face, "req-2")


async def ended(face: Face) -> None:
    actor = await face.world.manager.registry.find(face.experiment_id)
    while actor.experiment.trials[face.trial_id].live:
        await actor.next_change.wait()
