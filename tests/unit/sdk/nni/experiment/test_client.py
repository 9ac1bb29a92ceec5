"""The client against a real gRPC server in this process that says what the test wants."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import grpc
import pytest

from nni.experiment.client import ManagerClient
from nni.experiment.environment import RemoteSettings
from nni.experiment.errors import (
    ConfigError,
    ExperimentError,
    NotFoundError,
    RefusedError,
    ServiceFailedError,
    UnreachableError,
    WrongStateError,
)
from nni_proto.experiment.v1 import (
    config_pb2,
    experiment_pb2,
)
from nni_proto.experiment.v1 import (
    experiment_service_pb2 as pb,
)
from nni_wire.metadata import ERROR_DETAILS_KEY
from nni_wire.values import from_value, to_value
from tests.support.in_memory_manager import InMemoryManager
from tests.support.scripted_experiment_service import (
    Answer,
    ScriptedExperimentService,
    Supervised,
    answering,
    client,
    endpoint_on,
    manager,
    supervised,
)

__all__ = ["client", "manager", "supervised"]  # fixtures

SOON_S = 0.001


def refusing(code: grpc.StatusCode, text: str, **facts: str) -> Answer:
    def refuse(_request: Any, context: Any) -> None:
        context.set_trailing_metadata(((ERROR_DETAILS_KEY, json.dumps(facts).encode()),))
        context.abort(code, text)

    return refuse


def test_changing_calls_have_request_ids_of_their_own(
    manager: ScriptedExperimentService, client: ManagerClient
) -> None:
    manager.answers = [answering(pb.StopExperimentResponse())] * 2

    client.stop("a")
    client.stop("a")

    first, second = (request.request_id for request in manager.requests)
    assert first
    assert first != second


def test_update_sends_only_what_is_changed(
    manager: ScriptedExperimentService, client: ManagerClient
) -> None:
    manager.answers = [answering(pb.UpdateExperimentResponse())]

    client.update("a", trial_concurrency=3)

    request = manager.requests[0]
    assert request.trial_concurrency == 3
    assert not request.HasField("max_trial_number")
    assert not request.HasField("search_space")


def test_pages_are_read_to_the_last(
    manager: ScriptedExperimentService, client: ManagerClient
) -> None:
    def page(id_: str, token: str) -> Answer:
        found = [experiment_pb2.Experiment(id=id_)]
        return answering(pb.ListExperimentsResponse(experiments=found, next_page_token=token))

    manager.answers = [page("a", "t1"), page("b", "t2"), page("c", "")]

    assert [found.id for found in client.experiments()] == ["a", "b", "c"]
    assert [request.page_token for request in manager.requests] == ["", "t1", "t2"]


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (grpc.StatusCode.INVALID_ARGUMENT, ConfigError),
        (grpc.StatusCode.NOT_FOUND, NotFoundError),
        (grpc.StatusCode.ALREADY_EXISTS, WrongStateError),
        (grpc.StatusCode.FAILED_PRECONDITION, WrongStateError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, RefusedError),
        (grpc.StatusCode.UNAUTHENTICATED, UnreachableError),
        (grpc.StatusCode.INTERNAL, ServiceFailedError),
        (grpc.StatusCode.UNIMPLEMENTED, ServiceFailedError),
    ],
)
def test_refusals_become_errors_with_text_and_facts(
    manager: ScriptedExperimentService,
    client: ManagerClient,
    code: grpc.StatusCode,
    error: type[ExperimentError],
) -> None:
    manager.answers = [refusing(code, "port 80 is taken", field="port", holder="nginx")]

    with pytest.raises(error, match="port 80 is taken") as raised:
        client.get("a")

    assert type(raised.value) is error
    assert raised.value.facts == {"field": "port", "holder": "nginx"}


def test_wrong_field_is_not_named_twice(
    manager: ScriptedExperimentService, client: ManagerClient
) -> None:
    text = "trial_concurrency must be >= 1, got 0"
    manager.answers = [refusing(grpc.StatusCode.INVALID_ARGUMENT, text, field="trial_concurrency")]

    with pytest.raises(ConfigError) as raised:
        client.update("a", trial_concurrency=0)

    assert str(raised.value) == text
    assert raised.value.problems[0].field == "trial_concurrency"
    assert raised.value.problems[0].rule == "must be >= 1, got 0"


def test_wait_asks_again_after_each_round(
    manager: ScriptedExperimentService, client: ManagerClient
) -> None:
    done = experiment_pb2.Experiment(id="a", state=experiment_pb2.EXPERIMENT_STATE_DONE)
    manager.answers = [
        refusing(grpc.StatusCode.DEADLINE_EXCEEDED, "round over"),
        answering(pb.WaitExperimentResponse(experiment=done)),
    ]

    assert client.wait("a", (experiment_pb2.EXPERIMENT_STATE_DONE,)) == done
    assert len(manager.requests) == 2


def test_wait_ticks_while_it_waits(
    manager: ScriptedExperimentService, client: ManagerClient
) -> None:
    ticks = 0
    enough = ThreadPoolExecutor(1)

    def tick() -> None:
        nonlocal ticks
        ticks += 1
        if ticks == 3:
            raise KeyboardInterrupt

    def never(_request: Any, context: Any) -> pb.WaitExperimentResponse:
        while context.is_active():
            enough.submit(int).result()
        return pb.WaitExperimentResponse()

    manager.answers = [never]

    with pytest.raises(KeyboardInterrupt):
        client.wait("a", (experiment_pb2.EXPERIMENT_STATE_DONE,), tick, 0.001)

    enough.shutdown()
    assert ticks == 3


def test_log_is_read_piece_by_piece(
    manager: ScriptedExperimentService, client: ManagerClient
) -> None:
    manager.answers = [
        answering([pb.FollowLogsResponse(data=b"a"), pb.FollowLogsResponse(data=b"b")])
    ]

    assert list(client.follow_logs("a", pb.LOG_SOURCE_MANAGER)) == [b"a", b"b"]


def test_log_is_taken_up_where_its_stream_broke(
    manager: ScriptedExperimentService, supervised: Supervised
) -> None:
    supervised(manager, "t0ken")

    def breaking(_request: Any, context: Any) -> Iterator[pb.FollowLogsResponse]:
        yield pb.FollowLogsResponse(data=b"abc", offset=10, attempt=2)
        context.abort(grpc.StatusCode.UNAVAILABLE, "restarted")

    manager.answers = [breaking, answering([pb.FollowLogsResponse(data=b"d", offset=13)])]

    with ManagerClient(endpoint_on(manager.port), retry_step_s=SOON_S) as client:
        pieces = list(client.follow_logs("a", pb.LOG_SOURCE_MANAGER, follow=True, offset=10))

    assert pieces == [b"abc", b"d"]
    assert [(one.attempt, one.offset) for one in manager.requests] == [(0, 10), (2, 13)]


def test_import_gives_its_warnings(
    manager: ScriptedExperimentService, client: ManagerClient
) -> None:
    manager.answers = [answering(pb.ImportDataResponse(warnings=["w"]))]

    assert client.import_data("a", to_value([])) == ["w"]


def test_many_samples_are_imported_in_several_calls(
    manager: ScriptedExperimentService, client: ManagerClient
) -> None:
    samples = [{"parameter": {"text": "x" * 300_000}, "value": number} for number in range(9)]
    manager.answers = [
        answering(pb.ImportDataResponse(warnings=[f"w{number}"])) for number in range(3)
    ]

    assert client.import_data("a", to_value(samples)) == ["w0", "w1", "w2"]

    sent = [from_value(request.data) for request in manager.requests]
    assert [len(piece) for piece in sent] == [4, 4, 1]
    assert [sample for piece in sent for sample in piece] == samples
    assert len({request.request_id for request in manager.requests}) == 3


def test_token_does_not_show() -> None:
    assert "t0ken" not in repr(endpoint_on(1))


def test_pages_of_another_machine_are_those_of_its_own_address(
    manager: ScriptedExperimentService,
) -> None:
    remote = RemoteSettings("http://nni.example.org:8080", token="t0ken", insecure=True)
    endpoint = replace(endpoint_on(manager.port), http=remote.url, remote=remote)
    experiment = experiment_pb2.Experiment(id="exp00001")
    manager.answers = [
        answering(response(experiment))
        for response in (
            lambda one: pb.ResumeExperimentResponse(experiment=one, urls=["https://10.0.0.3:8081"]),
            lambda one: pb.ViewExperimentResponse(experiment=one, urls=["https://10.0.0.3:8081"]),
            lambda one: pb.GetExperimentResponse(experiment=one),
        )
    ]

    with ManagerClient(endpoint) as client:
        request = pb.ResumeExperimentRequest(experiment_id="exp00001", port=8081)
        pages = [
            list(client.resume(request).urls),
            list(client.view("exp00001", port=8081).urls),
            list(client.get("exp00001").urls),
        ]

    assert [request.port for request in manager.requests[:2]] == [0, 0]
    assert pages == [["http://nni.example.org:8080/?id=exp00001"]] * 3


@pytest.mark.parametrize("platform", ["local", "remote"])
def test_code_is_packed_for_machines_of_other_platforms(tmp_path: Path, platform: str) -> None:
    manager = InMemoryManager(tmp_path)  # type: ignore[abstract]  # gRPC refuses the other methods
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "trial.py").write_text("print(1)")
    config = config_pb2.ExperimentConfig(
        trial_code_directory=str(tmp_path / "code"),
        experiment_working_directory=str(tmp_path / "root"),
        training_services=[config_pb2.TrainingServiceConfig(platform=platform)],
    )

    with manager.served(), ManagerClient(endpoint_on(int(manager.grpc.split(":")[1]))) as client:
        client.create(
            config, port=0, url_prefix="", environment={"A": "b"}, interpreter="/usr/bin/python3"
        )

    request = manager.created[0]
    assert request.config.HasField("code_archive") is (platform != "local")
    assert request.config.experiment_working_directory == str(tmp_path / "root")
    assert (dict(request.environment), request.interpreter) == ({"A": "b"}, "/usr/bin/python3")
