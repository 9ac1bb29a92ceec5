"""gRPC API over a real server and channel in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import pytest
from google.protobuf.message_factory import GetMessageClass

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import config_pb2, experiment_pb2, experiment_service_pb2_grpc
from nni_proto.experiment.v1 import experiment_service_pb2 as pb
from nni_proto.trial.v1 import trial_service_pb2 as trial_pb
from nni_proto.trial.v1 import trial_service_pb2_grpc
from nni_wire.values import from_value, to_value
from svc_common.messaging.memory import InMemoryBus
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_manager.app import SERVICES
from svc_manager.servicers.experiment_servicer import ExperimentServicer
from svc_manager.servicers.trial_servicer import TrialServicer
from tests.unit.services.manager.world import World, world_on

DONE = experiment_pb2.EXPERIMENT_STATE_DONE


@dataclass
class Client:
    world: World
    experiments: experiment_service_pb2_grpc.ExperimentServiceAsyncStub
    trials: trial_service_pb2_grpc.TrialServiceAsyncStub

    async def done(self) -> str:
        """Create an experiment, run it to its end and give its id."""
        request = pb.CreateExperimentRequest(request_id="r1", config=self.world.config(), port=8080)
        created = await self.experiments.CreateExperiment(request)
        assert created.warnings == ["a warning"]
        assert created.urls
        experiment_id = created.experiment.id
        self.world.follow(experiment_id)
        await self.experiments.WaitExperiment(
            pb.WaitExperimentRequest(experiment_id=experiment_id, states=[DONE]), timeout=20
        )
        return experiment_id


@pytest.fixture
async def client(tmp_path: Path) -> AsyncIterator[Client]:
    server = GrpcServer(SERVICES, None)
    async with InMemoryBus() as bus, world_on(bus, tmp_path) as world:
        manager = world.manager
        server.register(
            lambda raw: experiment_service_pb2_grpc.add_ExperimentServiceServicer_to_server(
                ExperimentServicer(manager.experiments, manager.agent_directory, manager.diagnosis),
                raw,
            )
        )
        server.register(
            lambda raw: trial_service_pb2_grpc.add_TrialServiceServicer_to_server(
                TrialServicer(manager.trials), raw
            )
        )
        port = await server.start()
        async with open_channel(f"127.0.0.1:{port}") as channel:
            yield Client(
                world,
                experiment_service_pb2_grpc.ExperimentServiceStub(channel),
                trial_service_pb2_grpc.TrialServiceStub(channel),
            )
        await server.stop(1)


async def test_an_experiment_from_creation_to_deletion(client: Client) -> None:
    experiment_id = await client.done()
    get = pb.GetExperimentRequest(experiment_id=experiment_id)
    assert (await client.experiments.GetExperiment(get)).experiment.state == DONE

    updated = await client.experiments.UpdateExperiment(
        pb.UpdateExperimentRequest(experiment_id=experiment_id, trial_concurrency=7)
    )
    assert updated.experiment.config.trial_concurrency == 7
    handed_over = await client.experiments.UpdateExperiment(
        pb.UpdateExperimentRequest(
            experiment_id=experiment_id, tuner=config_pb2.AlgorithmConfig(name="Successor")
        )
    )
    assert handed_over.experiment.config.tuner.name == "Successor"
    limits = config_pb2.AgentLimits(max_agents=4)
    with pytest.raises(grpc.aio.AioRpcError, match="limit its trialConcurrency"):
        await client.experiments.UpdateExperiment(
            pb.UpdateExperimentRequest(experiment_id=experiment_id, agent_limits=limits)
        )
    limits.max_agent_time.seconds = -1
    with pytest.raises(grpc.aio.AioRpcError, match="maxAgentTime must be 0 s to"):
        await client.experiments.UpdateExperiment(
            pb.UpdateExperimentRequest(experiment_id=experiment_id, agent_limits=limits)
        )
    await client.experiments.StopExperiment(pb.StopExperimentRequest(experiment_id=experiment_id))
    viewed = await client.experiments.ViewExperiment(
        pb.ViewExperimentRequest(experiment_id=experiment_id, port=8081)
    )
    assert list(viewed.urls) == ["http://127.0.0.1:8081/"]
    await client.experiments.StopExperiment(pb.StopExperimentRequest(experiment_id=experiment_id))
    await client.experiments.ResumeExperiment(
        pb.ResumeExperimentRequest(experiment_id=experiment_id)
    )
    await client.experiments.StopExperiment(pb.StopExperimentRequest(experiment_id=experiment_id))
    await client.experiments.DeleteExperiment(
        pb.DeleteExperimentRequest(experiment_id=experiment_id)
    )

    listed = await client.experiments.ListExperiments(
        pb.ListExperimentsRequest(include_stopped=True)
    )
    assert list(listed.experiments) == []


async def test_trials_metrics_exports_and_events_are_paged_and_complete(client: Client) -> None:
    experiment_id = await client.done()

    listed = await client.trials.ListTrials(
        trial_pb.ListTrialsRequest(experiment_id=experiment_id, page_size=2)
    )
    one = await client.trials.GetTrial(
        trial_pb.GetTrialRequest(experiment_id=experiment_id, trial_id=listed.trials[1].id)
    )
    metrics = await client.trials.ListMetrics(
        trial_pb.ListMetricsRequest(experiment_id=experiment_id, type=metric_pb2.METRIC_TYPE_FINAL)
    )
    counts = await client.trials.CountTrials(
        trial_pb.CountTrialsRequest(experiment_id=experiment_id)
    )
    exported = await client.experiments.ExportData(
        pb.ExportDataRequest(experiment_id=experiment_id)
    )
    events = [
        item
        async for item in client.experiments.FollowEvents(
            pb.FollowEventsRequest(experiment_id=experiment_id)
        )
    ]
    logs = [
        item.data
        async for item in client.experiments.FollowLogs(
            pb.FollowLogsRequest(experiment_id=experiment_id, source=pb.LOG_SOURCE_MANAGER)
        )
    ]

    assert (len(listed.trials), bool(listed.next_page_token), listed.total) == (2, True, 5)
    assert one.trial == listed.trials[1]
    assert [from_value(row.metric.value) for row in metrics.metrics] == [0, 1, 2, 3, 4]
    assert dict(counts.counts) == {"SUCCEEDED": 5}
    assert len(exported.trials) == 5
    assert events[0].event.HasField("experiment_created")
    assert b"is DONE" in b"".join(logs)


@pytest.mark.parametrize("method", ["KillTrial", "AddTrial", "GetTrial"])
async def test_an_unknown_experiment_is_not_found(client: Client, method: str) -> None:
    request = getattr(trial_pb, f"{method}Request")(experiment_id="nonesuch")
    if method == "AddTrial":
        request.parameters.CopyFrom(to_value({"x": 1}))

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await getattr(client.trials, method)(request)

    assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_trial_that_is_over_cannot_be_killed(client: Client) -> None:
    experiment_id = await client.done()
    listed = await client.trials.ListTrials(trial_pb.ListTrialsRequest(experiment_id=experiment_id))

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await client.trials.KillTrial(
            trial_pb.KillTrialRequest(experiment_id=experiment_id, trial_id=listed.trials[0].id)
        )

    assert refusal.value.code() is grpc.StatusCode.FAILED_PRECONDITION


async def test_waiting_for_no_state_is_refused(client: Client) -> None:
    experiment_id = await client.done()

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await client.experiments.WaitExperiment(
            pb.WaitExperimentRequest(experiment_id=experiment_id)
        )

    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("state", [0, 99, -1])
async def test_waiting_for_an_unknown_state_is_refused(client: Client, state: int) -> None:
    experiment_id = await client.done()

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await client.experiments.WaitExperiment(
            pb.WaitExperimentRequest(experiment_id=experiment_id, states=[state])  # type: ignore[list-item] # unknown
        )

    assert refusal.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "states" in str(refusal.value.details())


async def test_runners_are_listed_once_heard_of_and_only_known_ones_drained(
    client: Client,
) -> None:
    listed = await client.experiments.ListRunners(pb.ListRunnersRequest())
    assert list(listed.runners) == []

    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await client.experiments.DrainRunner(pb.DrainRunnerRequest(runner_id="unknown"))

    assert refusal.value.code() is grpc.StatusCode.NOT_FOUND


_NONSENSE = ["", "../../etc", "a.b", "*", ">", "\0", "x" * 10_000, "exp 1", "ünïcode"]


def _fill(message: Any, text: str, number: int) -> Any:
    """Put nonsense into every plain field of a request."""
    for field in message.DESCRIPTOR.fields:
        if field.is_repeated or field.message_type:
            continue
        if field.cpp_type == field.CPPTYPE_STRING and field.type == field.TYPE_STRING:
            setattr(message, field.name, text)
        elif field.cpp_type in {field.CPPTYPE_INT32, field.CPPTYPE_INT64}:
            setattr(message, field.name, number)
        elif field.cpp_type == field.CPPTYPE_ENUM:
            setattr(message, field.name, abs(number) % 100)
    return message


@pytest.mark.parametrize("text", _NONSENSE)
@pytest.mark.parametrize("number", [0, -1, 2**31 - 1])
async def test_nonsense_is_refused_and_never_an_internal_error(
    client: Client, text: str, number: int
) -> None:
    ours = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND}
    services = [
        (client.experiments, pb.DESCRIPTOR.services_by_name["ExperimentService"]),
        (client.trials, trial_pb.DESCRIPTOR.services_by_name["TrialService"]),
    ]
    answers: list[tuple[str, grpc.StatusCode, str | None]] = []
    for stub, service in services:
        for method in service.methods:
            request = _fill(GetMessageClass(method.input_type)(), text, number)
            call = getattr(stub, method.name)(request, timeout=20)
            try:
                if method.server_streaming:
                    async for _ in call:
                        break
                else:
                    await call
            except grpc.aio.AioRpcError as refusal:
                answers.append((method.name, refusal.code(), refusal.details()))
    assert [answer for answer in answers if answer[1] not in ours] == []
