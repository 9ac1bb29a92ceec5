from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_proto.tuning.v1 import algorithm_service_pb2, algorithm_service_pb2_grpc
from nni_wire.values import from_value, to_value
from svc_common.access.current_call import serving
from svc_common.access.roles import Caller, Role
from svc_common.errors import InvalidArgumentError
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_manager.adapters.caller_turns import TURNS, CallerTurns
from svc_manager.adapters.grpc_algorithm_checker import GrpcAlgorithmChecker

TOKEN = "the-token"


class Strict(algorithm_service_pb2_grpc.AlgorithmServiceServicer):
    """Knows TPE only, and writes down what it was asked."""

    def __init__(self) -> None:
        self.asked: list[algorithm_service_pb2.ValidateAlgorithmsRequest] = []
        self.arrived = asyncio.Event()
        self.hold = asyncio.Event()
        self.hold.set()

    async def ListAlgorithms(
        self, request: algorithm_service_pb2.ListAlgorithmsRequest, context: Any
    ) -> algorithm_service_pb2.ListAlgorithmsResponse:
        return algorithm_service_pb2.ListAlgorithmsResponse()

    async def ValidateAlgorithms(
        self, request: algorithm_service_pb2.ValidateAlgorithmsRequest, context: Any
    ) -> algorithm_service_pb2.ValidateAlgorithmsResponse:
        self.asked.append(request)
        self.arrived.set()
        await self.hold.wait()
        if request.tuner.name != "TPE":
            raise InvalidArgumentError("tuner.name", "must be TPE", request.tuner.name)
        return algorithm_service_pb2.ValidateAlgorithmsResponse(
            warnings=["odd"], optimize_mode="minimize"
        )

    async def ReplaySuggestions(
        self, request: algorithm_service_pb2.ReplaySuggestionsRequest, context: Any
    ) -> AsyncIterator[algorithm_service_pb2.ReplaySuggestionsResponse]:
        yield algorithm_service_pb2.ReplaySuggestionsResponse()


@pytest.fixture
def dispatcher() -> Strict:
    return Strict()


@pytest.fixture
async def checker(dispatcher: Strict) -> AsyncIterator[GrpcAlgorithmChecker]:
    server = GrpcServer(("nni_proto.tuning.v1.AlgorithmService",), TOKEN)
    server.register(
        lambda raw: algorithm_service_pb2_grpc.add_AlgorithmServiceServicer_to_server(
            dispatcher, raw
        )
    )
    port = await server.start()
    async with open_channel(f"127.0.0.1:{port}") as channel:
        yield GrpcAlgorithmChecker(channel, TOKEN, CallerTurns())
    await server.stop(0)


def config(tuner: str) -> config_pb2.ExperimentConfig:
    made = config_pb2.ExperimentConfig()
    made.tuner.name = tuner
    made.assessor.name = "Medianstop"
    made.search_space.CopyFrom(to_value({"x": 1}))
    return made


async def test_the_word_of_the_dispatcher_is_passed_on(
    checker: GrpcAlgorithmChecker, dispatcher: Strict
) -> None:
    assert await checker.check(config("TPE"), "/usr/bin/python3") == (["odd"], "minimize")

    (asked,) = dispatcher.asked
    assert asked.interpreter == "/usr/bin/python3"
    assert asked.assessor.name == "Medianstop"
    assert not asked.HasField("advisor")
    assert from_value(asked.search_space) == {"x": 1}


async def test_several_objectives_and_limits_are_sent(
    checker: GrpcAlgorithmChecker, dispatcher: Strict
) -> None:
    plain, several, limited = config("TPE"), config("TPE"), config("TPE")
    for metric in ("accuracy", "latency"):
        several.objectives.add(metric=metric)
    limited.constraints.add(metric="memory", max=4)

    for asked in (plain, several, limited):
        await checker.check(asked, "")

    assert [asked.several_outcomes for asked in dispatcher.asked] == [False, True, True]


async def test_enqueued_configurations_are_sent_at_creation_only(
    checker: GrpcAlgorithmChecker, dispatcher: Strict
) -> None:
    asked = config("TPE")
    asked.search.enqueue.append(to_value({"x": 1}))

    await checker.check(asked, "")
    await checker.check(asked, "", replaces_space=True)

    created, changed = dispatcher.asked
    assert [from_value(point) for point in created.enqueued] == [{"x": 1}]
    assert not created.replaces_space
    assert changed.replaces_space
    assert not changed.enqueued


async def test_tuner_that_is_replaced_is_sent(
    checker: GrpcAlgorithmChecker, dispatcher: Strict
) -> None:
    await checker.check(config("TPE"), "")
    await checker.check(config("TPE"), "", replaced_tuner=config("Random").tuner)

    created, handed_over = dispatcher.asked
    assert not created.HasField("replaced_tuner")
    assert handed_over.replaced_tuner.name == "Random"


async def test_a_refusal_keeps_its_field(checker: GrpcAlgorithmChecker) -> None:
    with pytest.raises(InvalidArgumentError, match=r"tuner\.name must be TPE") as refusal:
        await checker.check(config("Nope"), "")

    assert refusal.value.field == "tuner.name"


async def test_many_checks_of_one_caller_leave_room_for_others(
    checker: GrpcAlgorithmChecker, dispatcher: Strict
) -> None:
    dispatcher.hold.clear()
    with serving(Caller("mallory", Role.USER, "token")):
        slow = [asyncio.create_task(checker.check(config("TPE"), "")) for _ in range(10)]
    while len(dispatcher.asked) < TURNS:
        await dispatcher.arrived.wait()
        dispatcher.arrived.clear()

    with serving(Caller("alice", Role.USER, "token")):
        hers = asyncio.create_task(checker.check(config("TPE"), "of-alice"))
    while dispatcher.asked[-1].interpreter != "of-alice":
        await dispatcher.arrived.wait()
        dispatcher.arrived.clear()

    assert len(dispatcher.asked) == TURNS + 1
    dispatcher.hold.set()
    await asyncio.gather(*slow, hers)
