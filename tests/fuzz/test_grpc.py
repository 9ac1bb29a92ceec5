"""Fuzzing of every gRPC method with valid, half-valid and random bytes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2, experiment_service_pb2
from nni_wire.values import to_value
from tests.support.compression_job import job_of
from tests.support.fuzzing.calls import (
    CALL_TIMEOUT_S,
    DELIBERATE,
    WAITING_CALL_TIMEOUT_S,
    Answer,
    Server,
    methods_of,
    open_server,
    request_class,
    served_by,
    services_of,
    waits,
)
from tests.support.fuzzing.effort import LONGEST_S, cases
from tests.support.fuzzing.messages import broken, messages, nearly
from tests.support.fuzzing.site import Site

PROTOS = Path(__file__).parents[2] / "proto" / "nni_proto"
OTHERS = "nni_proto.tuning.v1.TuningService"
"""Service of external algorithms; the services only call it."""
SERVICES = [name for name in services_of(PROTOS) if name != OTHERS]
METHODS = methods_of(SERVICES)
CASES = 25
"""Cases per method in a usual run."""
ONLY_BROKEN = {"nni_proto.runner.v1.RunnerService.DrainRunner"}
"""Methods whose valid requests would end the shared agent."""


@dataclass(frozen=True)
class Servers:
    """Channels to all services of the site."""

    by_service: Mapping[str, Server]

    def of(self, method: MethodDescriptor) -> Server:
        return self.by_service[method.containing_service.full_name]

    def call(self, method: MethodDescriptor, payload: bytes) -> Answer:
        timeout_s = WAITING_CALL_TIMEOUT_S if waits(method, payload) else CALL_TIMEOUT_S
        return self.of(method).call(method, payload, timeout_s)

    def named(self, name: str, request: Message) -> Answer:
        (method,) = (one for one in METHODS if one.name == name and "runner" not in one.full_name)
        return self.call(method, request.SerializeToString())


@pytest.fixture(scope="module")
def servers(site: Site) -> Iterator[Servers]:
    endpoint = site.endpoint()
    token = endpoint["token"]
    manager = open_server(endpoint["grpc"], token)
    listed = Servers(dict.fromkeys(SERVICES, manager)).named(
        "ListRunners", experiment_service_pb2.ListRunnersRequest()
    )
    runners = listed.read(experiment_service_pb2.ListRunnersResponse).runners
    addresses = (endpoint["grpc"], *site.algorithm_addresses(), runners[0].grpc_address)
    opened = {
        service: open_server(address, token)
        for address in addresses
        for service in served_by(address, token)
    }
    yield Servers(opened)
    for server in (manager, *opened.values()):
        server.channel.close()


def fields_of(site: Site) -> dict[str, st.SearchStrategy[Any]]:
    """Return strategies for ids, and for fields that are executed, opened or written."""
    classes = ["", "x", "x.Y", "os.system", "..", "trial.", "json.JSONDecoder"]
    programs = ["", sys.executable, "/nonexistent", "\0", str(site.folder)]
    folders = [str(site.folder / "done"), "", "relative", str(site.folder / "none"), "\0"]
    roots = [str(site.folder / "created"), "relative", f"{site.folder}/done/trial.py/x", "/\0"]
    return {
        "experiment_id": st.sampled_from([*site.ids, *site.ids, "", "nope", "../x", "a*", "🦆"]),
        "trial_id": st.sampled_from([*site.trials[:8], "", "nope", "../x"]),
        "runner_id": st.sampled_from(["", "nope", "a.b", "*", ">", " ", "\r\n"]),
        "interpreter": st.sampled_from(programs),
        "trial_command": st.sampled_from(["", " ", "true", "exit 3", "python3 trial.py", "\0"]),
        "trial_code_directory": st.sampled_from(folders),
        "code_directory": st.sampled_from(folders),
        "experiment_directory": st.sampled_from([*folders, f"{site.folder}/done\0"]),
        "experiment_working_directory": st.sampled_from(roots),
        "server_address": st.sampled_from(["", "127.0.0.1:1", "nowhere", "[::1]:x", "🦆:1", "\0"]),
        "class_name": st.sampled_from(classes),
        "port": st.sampled_from([0, 0, 0, -1, 65536, 2**31 - 1]),
        "trial_concurrency": st.sampled_from([-(2**31), -1, 0, 1, 2, 100_000, 2**31 - 1]),
        "max_trial_number": st.sampled_from([-(2**63), -1, 0, 1, 2, 3]),
        "environment": st.sampled_from(["", "a=b", "x", "\0", "🦆", "NNI_X"]),
        "key": st.sampled_from(["PATH", "", "A=B", "x\0", "🦆", "LANG", "_type", "x", "tags"]),
    }


def config_of(site: Site) -> config_pb2.ExperimentConfig:
    config = config_pb2.ExperimentConfig(
        trial_command="python3 trial.py",
        trial_code_directory=str(site.folder / "done"),
        experiment_working_directory=str(site.folder / "created"),
        trial_concurrency=1,
        max_trial_number=1,
        search_space=to_value({"x": {"_type": "uniform", "_value": [0, 1]}}),
    )
    config.tuner.name = "Random"
    config.tuner.class_args.CopyFrom(to_value({"seed": 1}))
    config.training_services.add(platform="local")
    return config


def valid_requests(site: Site, method: MethodDescriptor) -> list[Message]:
    """Return requests that the services accept."""
    kind: Any = request_class(method)
    if method.name == "CreateExperiment":
        return [kind(config=config_of(site), interpreter=sys.executable, environment={"A": "b"})]
    if method.name == "ValidateAlgorithms":
        config = config_of(site)
        return [kind(tuner=config.tuner, search_space=config.search_space)]
    if method.name == "ValidateJob":
        return [kind(job=to_value(job_of(2)))]
    if method.name == "ValidateExploration":
        document = value_pb2.BlobRef(sha256="0" * 64, size_bytes=2)
        return [kind(exploration=config_pb2.NasConfig(document=document, strategy="Random"))]
    names = kind.DESCRIPTOR.fields_by_name
    created = []
    for experiment in site.ids:
        request = kind()
        if "experiment_id" in names:
            request.experiment_id = experiment
        if "trial_id" in names:
            request.trial_id = site.trials[0]
        created.append(request)
    return created


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.full_name)
@pytest.mark.timeout(LONGEST_S)
def test_every_answer_is_deliberate(site: Site, servers: Servers, method: MethodDescriptor) -> None:
    fields = fields_of(site)
    anything = messages(method.input_type, fields).map(encoded)
    half_valid = nearly(valid_requests(site, method), fields).map(encoded)
    damaged = half_valid.flatmap(broken)
    payloads = damaged if method.full_name in ONLY_BROKEN else anything | half_valid | damaged

    @cases(CASES)
    @given(payload=payloads)
    def each(payload: bytes) -> None:
        if method.full_name in ONLY_BROKEN and is_message(method, payload):
            return
        check(site, servers, method, payload)

    each()


def encoded(message: Message) -> bytes:
    return message.SerializeToString(deterministic=True)


def is_message(method: MethodDescriptor, payload: bytes) -> bool:
    try:
        request_class(method).FromString(payload)
    except Exception:  # noqa: BLE001 - any error of protobuf
        return False
    return True


def check(site: Site, servers: Servers, method: MethodDescriptor, payload: bytes) -> None:
    answer = servers.call(method, payload)
    waiting = waits(method, payload) and answer.code is grpc.StatusCode.DEADLINE_EXCEEDED
    assert waiting or answer.code in DELIBERATE, answer
    if answer.code is grpc.StatusCode.INVALID_ARGUMENT:
        assert {"field", "rule"} <= set(answer.facts), answer
        assert answer.facts["rule"] in answer.message, answer
    if answer.code is not grpc.StatusCode.OK and not waiting:
        assert len(answer.message) > 8, answer
    repeat(servers, method, payload, answer)
    assert site.new_defects() == []
    clean_up(servers, method, answer)


def repeat(servers: Servers, method: MethodDescriptor, payload: bytes, answer: Answer) -> None:
    """Repeat a successful request that has a request id; it must succeed again."""
    if answer.code is not grpc.StatusCode.OK or method.server_streaming or method.client_streaming:
        return
    request: Any = request_class(method).FromString(payload)
    if getattr(request, "request_id", ""):
        again = servers.call(method, payload)
        assert again.code is grpc.StatusCode.OK, again


def clean_up(servers: Servers, method: MethodDescriptor, answer: Answer) -> None:
    """Stop and delete the experiment that a call has created."""
    if method.name != "CreateExperiment" or answer.code is not grpc.StatusCode.OK:
        return
    created = answer.read(experiment_service_pb2.CreateExperimentResponse).experiment.id
    pb = experiment_service_pb2
    servers.named("StopExperiment", pb.StopExperimentRequest(experiment_id=created))
    servers.named("DeleteExperiment", pb.DeleteExperimentRequest(experiment_id=created))
