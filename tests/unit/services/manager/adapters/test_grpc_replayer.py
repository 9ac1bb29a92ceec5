from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

from nni_proto.experiment.v1 import history_service_pb2, replay_pb2
from nni_proto.tuning.v1 import algorithm_service_pb2 as pb
from nni_proto.tuning.v1 import algorithm_service_pb2_grpc
from svc_common.errors import NotFoundError
from svc_common.rpc.client import open_channel
from svc_common.rpc.server import GrpcServer
from svc_manager.adapters.grpc_replayer import GrpcReplayer

TOKEN = "the-token"


class Replaying(algorithm_service_pb2_grpc.AlgorithmServiceServicer):
    """Replays one experiment."""

    async def ListAlgorithms(
        self, request: pb.ListAlgorithmsRequest, context: Any
    ) -> pb.ListAlgorithmsResponse:
        return pb.ListAlgorithmsResponse()

    async def ValidateAlgorithms(
        self, request: pb.ValidateAlgorithmsRequest, context: Any
    ) -> pb.ValidateAlgorithmsResponse:
        return pb.ValidateAlgorithmsResponse()

    async def ReplaySuggestions(
        self, request: pb.ReplaySuggestionsRequest, context: Any
    ) -> AsyncIterator[pb.ReplaySuggestionsResponse]:
        if request.experiment_id != "exp":
            raise NotFoundError("experiment", request.experiment_id)
        yield pb.ReplaySuggestionsResponse(progress=replay_pb2.ReplayProgress(handled=1, total=2))
        yield pb.ReplaySuggestionsResponse(difference=replay_pb2.ReplayDifference(trial_id="t"))
        yield pb.ReplaySuggestionsResponse(verdict=replay_pb2.ReplayVerdict(suggestions=3))


@pytest.fixture
async def replayer() -> AsyncIterator[GrpcReplayer]:
    server = GrpcServer(("nni_proto.tuning.v1.AlgorithmService",), TOKEN)
    server.register(
        lambda raw: algorithm_service_pb2_grpc.add_AlgorithmServiceServicer_to_server(
            Replaying(), raw
        )
    )
    port = await server.start()
    async with open_channel(f"127.0.0.1:{port}") as channel:
        yield GrpcReplayer(channel, TOKEN)
    await server.stop(0)


async def replayed(
    replayer: GrpcReplayer, experiment_id: str
) -> list[history_service_pb2.ReplayExperimentResponse]:
    async with aclosing(replayer.replay(experiment_id)) as messages:
        return [message async for message in messages]


async def test_words_of_the_dispatcher_are_passed_on(replayer: GrpcReplayer) -> None:
    progress, difference, verdict = await replayed(replayer, "exp")

    assert (progress.progress.handled, progress.progress.total) == (1, 2)
    assert difference.difference.trial_id == "t"
    assert verdict.verdict.suggestions == 3


async def test_an_unknown_experiment_stays_an_unknown_experiment(replayer: GrpcReplayer) -> None:
    with pytest.raises(NotFoundError):
        await replayed(replayer, "other")
