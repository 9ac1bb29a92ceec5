"""Every changing call of the manager, made twice: the second call changes nothing."""

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
from svc_manager.domain.inputs import RecordedCommand, Stop
from svc_manager.servicers.experiment_servicer import Context, ExperimentServicer
from svc_manager.servicers.trial_servicer import TrialServicer
from tests.unit.services.manager.world import World, hold, world_on

RUNNING = experiment_pb2.EXPERIMENT_STATE_RUNNING
NO_CONTEXT = cast("Context", None)


@dataclass
class Api:
    """API of a manager, with one experiment."""

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
async def api(tmp_path: Path) -> AsyncIterator[Api]:
    async with InMemoryBus() as bus, world_on(bus, tmp_path, hold) as world:
        manager = world.manager
        made = Api(
            world,
            ExperimentServicer(manager.experiments, manager.agent_directory, manager.diagnosis),
            TrialServicer(manager.trials),
        )
        made.experiment_id = await world.create(max_trial_number=50)
        held = await world.agent.holds(2)
        await world.wait_for_state(made.experiment_id, RUNNING)
        made.trial_id = held[0].task.trial_id
        yield made


Call = Callable[[Api, str], Awaitable[Message]]


async def resume(api: Api, request_id: str) -> Message:
    return await api.experiments.ResumeExperiment(
        pb.ResumeExperimentRequest(request_id=request_id, experiment_id=api.experiment_id),
        NO_CONTEXT,
    )


async def view(api: Api, request_id: str) -> Message:
    return await api.experiments.ViewExperiment(
        pb.ViewExperimentRequest(request_id=request_id, experiment_id=api.experiment_id),
        NO_CONTEXT,
    )


async def stop(api: Api, request_id: str) -> Message:
    return await api.experiments.StopExperiment(
        pb.StopExperimentRequest(request_id=request_id, experiment_id=api.experiment_id),
        NO_CONTEXT,
    )


async def delete(api: Api, request_id: str) -> Message:
    return await api.experiments.DeleteExperiment(
        pb.DeleteExperimentRequest(request_id=request_id, experiment_id=api.experiment_id),
        NO_CONTEXT,
    )


async def update(api: Api, request_id: str) -> Message:
    return await api.experiments.UpdateExperiment(
        pb.UpdateExperimentRequest(
            request_id=request_id, experiment_id=api.experiment_id, max_trial_number=60
        ),
        NO_CONTEXT,
    )


async def import_data(api: Api, request_id: str) -> Message:
    return await api.experiments.ImportData(
        pb.ImportDataRequest(
            request_id=request_id,
            experiment_id=api.experiment_id,
            data=to_value([{"parameter": {"x": 1, "y": 2}, "value": 0.5}]),
        ),
        NO_CONTEXT,
    )


async def change_remarks(api: Api, request_id: str) -> Message:
    return await api.experiments.ChangeRemarks(
        pb.ChangeRemarksRequest(
            request_id=request_id, experiment_id=api.experiment_id, note="look again"
        ),
        NO_CONTEXT,
    )


async def drain(api: Api, request_id: str) -> Message:
    return await api.experiments.DrainRunner(
        pb.DrainRunnerRequest(request_id=request_id, runner_id=api.world.agent.runner_id),
        NO_CONTEXT,
    )


async def kill(api: Api, request_id: str) -> Message:
    return await api.trials.KillTrial(
        trial_pb.KillTrialRequest(
            request_id=request_id, experiment_id=api.experiment_id, trial_id=api.trial_id
        ),
        NO_CONTEXT,
    )


async def add(api: Api, request_id: str) -> Message:
    return await api.trials.AddTrial(
        trial_pb.AddTrialRequest(
            request_id=request_id, experiment_id=api.experiment_id, parameters=to_value({"x": 7})
        ),
        NO_CONTEXT,
    )


ON_STOPPED = (resume, view, delete)
CALLS: tuple[Call, ...] = (
    *ON_STOPPED,
    *(stop, update, import_data, change_remarks, drain, kill, add),
)
ALL = {
    *("CreateExperiment", "ResumeExperiment", "ViewExperiment", "StopExperiment"),
    *("DeleteExperiment", "UpdateExperiment", "ImportData", "DrainRunner"),
    "ChangeRemarks",
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
    api: Api, call: Call
) -> None:
    if call in ON_STOPPED:
        await api.stop()
    first = await call(api, "req-1")
    recorded = await requests_in_log(api)

    second = await call(api, "req-1")

    assert shown(first) == shown(second)
    assert await requests_in_log(api) == recorded


async def requests_in_log(api: Api) -> int:
    """Give how many requests of users have been carried out."""
    if await api.end() == 0:
        return 0
    actor = await api.world.manager.registry.find(api.experiment_id)
    experiment = actor.experiment
    return len(experiment.requests) + experiment.revision + len(experiment.custom_ids)


async def test_a_repeated_creation_gives_the_same_experiment(api: Api) -> None:
    request = pb.CreateExperimentRequest(request_id="create-1", config=api.world.config())

    answers = [await api.experiments.CreateExperiment(request, NO_CONTEXT) for _ in range(3)]

    assert len({answer.experiment.id for answer in answers}) == 1
    assert len((await api.world.experiments.list()).items) == 2
    request.config.trial_concurrency += 1
    with pytest.raises(InvalidArgumentError, match="request_id must name one request only"):
        await api.experiments.CreateExperiment(request, NO_CONTEXT)


@pytest.mark.parametrize("call", [stop, update, import_data, kill, add])
async def test_the_id_of_one_request_is_refused_for_another(api: Api, call: Call) -> None:
    other = kill if call is not kill else add
    await other(api, "req-1")

    with pytest.raises(InvalidArgumentError, match="request_id must name one request only"):
        await call(api, "req-1")


async def test_a_stop_that_an_older_version_carried_out_is_repeated(api: Api) -> None:
    fingerprint = "d91ec36c52358231"  # of the text that the command held
    actor = await api.world.manager.registry.find(api.experiment_id)
    await actor.submit(RecordedCommand(Stop(), "req-1", "StopExperiment", "me", fingerprint))
    recorded = await requests_in_log(api)

    await stop(api, "req-1")

    assert await requests_in_log(api) == recorded


async def test_a_second_identical_end_is_fine_and_a_different_one_is_an_error(api: Api) -> None:
    await kill(api, "req-1")
    (held,) = [one for one in api.world.agent.held.values() if one.task.trial_id == api.trial_id]
    await api.world.agent.exit(held)
    await ended(api)

    await kill(api, "req-1")
    with pytest.raises(FailedPreconditionError, match="is over"):
        await kill(api, "req-2")


async def ended(api: Api) -> None:
    actor = await api.world.manager.registry.find(api.experiment_id)
    while actor.experiment.trials[api.trial_id].live:
        await actor.next_change.wait()
