"""The dispatcher as a process: readiness, gRPC, bus."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import config_pb2
from nni_proto.tuning.v1 import algorithm_service_pb2 as pb
from nni_proto.tuning.v1 import algorithm_service_pb2_grpc as pb_grpc
from nni_wire.metadata import bearer
from nni_wire.values import to_value
from svc_common.rpc.client import service_error
from tests.integration.dispatcher.conftest import soon
from tests.integration.dispatcher.host_processes import host_pid, pid_exists
from tests.support.scripted_manager import ScriptedManager, custom, named
from tests.support.servers import NatsServer

TOKEN = "a secret"
SPACE = {"x": {"_type": "uniform", "_value": [0, 1]}}


@dataclass
class Service:
    process: asyncio.subprocess.Process
    stub: "pb_grpc.AlgorithmServiceAsyncStub"

    async def validate(self, **request: Any) -> pb.ValidateAlgorithmsResponse:
        request.setdefault("search_space", to_value(SPACE))
        return await self.stub.ValidateAlgorithms(
            pb.ValidateAlgorithmsRequest(**request), metadata=bearer(TOKEN)
        )


@pytest.fixture
async def service(shared_nats: NatsServer) -> AsyncIterator[Service]:
    ready, ready_write = os.pipe()
    environment = os.environ | {
        "NNI_NATS_URL": shared_nats.url,
        "NNI_TOKEN": TOKEN,
        "NNI_READY_FD": str(ready_write),
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "svc_dispatcher", env=environment, pass_fds=(ready_write,)
    )
    os.close(ready_write)
    with os.fdopen(ready) as facts:
        address = json.loads(await asyncio.to_thread(facts.readline))["grpc"]
    async with grpc.aio.insecure_channel(address) as channel:
        yield Service(process, pb_grpc.AlgorithmServiceStub(channel))
    if process.returncode is None:
        process.terminate()
    await process.wait()


async def refusal(service: Service, **request: object) -> str:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await service.validate(**request)
    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    return service_error(caught.value).message


async def test_lists_the_built_in_algorithms(service: Service) -> None:
    answer = await service.stub.ListAlgorithms(
        pb.ListAlgorithmsRequest(kind=pb.ALGORITHM_KIND_TUNER), metadata=bearer(TOKEN)
    )

    by_name = {item.name: item for item in answer.algorithms}
    assert {"TPE", "Random", "GridSearch", "BatchTuner"} <= by_name.keys()
    assert by_name["Random"].lookahead
    assert not by_name["TPE"].lookahead
    assert by_name["TPE"].class_name == "nni.algorithms.hpo.hyperopt_tuner.HyperoptTuner"


async def test_callers_without_the_token_are_refused(service: Service) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await service.stub.ListAlgorithms(pb.ListAlgorithmsRequest())

    assert caught.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_good_choices_are_accepted_with_their_optimize_mode(service: Service) -> None:
    implicit = await service.validate(tuner=named("TPE"))
    explicit = await service.validate(tuner=named("TPE", optimize_mode="minimize"))

    assert (implicit.optimize_mode, explicit.optimize_mode) == ("maximize", "minimize")


@pytest.mark.claim("hpo", 47)
async def test_bad_class_argument_is_refused(service: Service) -> None:
    message = await refusal(
        service, tuner=named("TPE"), assessor=named("Medianstop", start_step=-1)
    )

    assert "start_step" in message


async def test_unknown_name_and_bad_space_are_refused(service: Service) -> None:
    assert "Medianstop" not in await refusal(service, tuner=named("TPF"))
    assert "nonsense" in await refusal(
        service,
        tuner=named("TPE"),
        search_space=to_value({"x": {"_type": "nonsense", "_value": [1]}}),
    )


@pytest.mark.claim("hpo", 51)
@pytest.mark.claim("platform", 8)
async def test_advisor_excludes_tuner(service: Service) -> None:
    message = await refusal(service, tuner=named("TPE"), advisor=named("Hyperband"))

    assert "advisor" in message
    assert "tuner" in message


async def test_custom_class_that_cannot_be_used_is_refused(
    service: Service, code: Callable[[str], Path]
) -> None:
    folder = code("from nni.tuner import Tuner\nclass Good(Tuner): ...\nclass NoTuner: ...\n")
    interpreter = sys.executable

    for class_name, word in (
        ("missing.Good", "missing"),
        ("algorithms.Absent", "Absent"),
        ("algorithms.NoTuner", "subclass"),
    ):
        message = await refusal(service, tuner=custom(class_name, folder), interpreter=interpreter)
        assert word in message
    accepted = await service.validate(
        tuner=custom("algorithms.Good", folder), interpreter=interpreter
    )
    assert accepted.optimize_mode == ""


async def test_several_outcomes_open_the_spaces_of_the_process(service: Service) -> None:
    words = to_value({"x": {"_type": "choice", "_value": ["a", "b"]}})

    message = await refusal(service, tuner=named("GPTuner"), search_space=words)

    assert "finite numbers" in message
    await service.validate(tuner=named("GPTuner"), search_space=words, several_outcomes=True)


async def test_enqueued_configurations_and_new_spaces_are_checked(service: Service) -> None:
    space = to_value({**SPACE, "_constraints": ["x <= 0.5"]})

    broken = await refusal(
        service, tuner=named("TPE"), search_space=space, enqueued=[to_value({"x": 0.75})]
    )
    kept = await refusal(service, tuner=named("SMAC"), replaces_space=True)

    assert "search.enqueue[0] must keep the constraint x <= 0.5" in broken
    assert "SMAC keeps the search space" in kept


async def test_interpreter_without_the_library_is_refused(service: Service, tmp_path: Path) -> None:
    interpreter = tmp_path / "python"
    interpreter.write_text("#!/bin/sh\necho 'No module named nni' >&2\nexit 1\n")
    interpreter.chmod(0o755)

    assert "No module named nni" in await refusal(
        service, tuner=named("TPE"), interpreter=str(interpreter)
    )
    assert "cannot be started" in await refusal(
        service, tuner=named("TPE"), interpreter=str(tmp_path / "absent")
    )


async def test_killed_service_takes_its_hosts_with_it(
    service: Service, manager: ScriptedManager
) -> None:
    await manager.create(SPACE, tuner=named("Random"))
    await manager.received("algorithm_started")
    pid = host_pid(manager)
    assert pid

    service.process.send_signal(signal.SIGKILL)

    await soon(lambda: not pid_exists(pid))


async def test_algorithm_that_a_signal_has_stopped_goes_on(
    service: Service, manager: ScriptedManager
) -> None:
    await manager.create(SPACE, tuner=named("Random"))
    await manager.received("algorithm_started")
    pid = host_pid(manager)
    assert pid

    os.kill(pid, signal.SIGSTOP)

    ((_, parameters),) = await manager.generate(1)
    assert 0 <= parameters["x"] <= 1
    assert host_pid(manager) == pid


async def test_terminated_service_ends_its_hosts_and_itself(
    service: Service, manager: ScriptedManager
) -> None:
    await manager.create(SPACE, tuner=named("Random"))
    await manager.received("algorithm_started")
    pid = host_pid(manager)

    service.process.terminate()
    code = await service.process.wait()

    assert code == 0
    assert not pid_exists(pid)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.ValidateAlgorithmsRequest(interpreter="python3\0"), "interpreter"),
        (
            pb.ValidateAlgorithmsRequest(search_space=value_pb2.Value(big_int_value="x")),
            "search_space",
        ),
        (
            pb.ValidateAlgorithmsRequest(
                tuner=config_pb2.AlgorithmConfig(
                    name="TPE", class_args=value_pb2.Value(blob_value=value_pb2.BlobRef())
                )
            ),
            "tuner.classArgs",
        ),
    ],
)
async def test_unreadable_value_is_refused_by_its_field(
    service: Service, request_: pb.ValidateAlgorithmsRequest, field: str
) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await service.stub.ValidateAlgorithms(request_, metadata=bearer(TOKEN))

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert str(caught.value.details()).startswith(f"{field} must")
