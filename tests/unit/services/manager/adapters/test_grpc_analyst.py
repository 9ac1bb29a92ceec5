"""The adapter over a real server in this process."""

from collections.abc import AsyncIterator
from typing import Any

import grpc.aio
import pytest

from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from nni_proto.tuning.v1 import analysis_service_pb2_grpc as pb_grpc
from svc_common.errors import UnavailableError
from svc_manager.adapters.grpc_analyst import GrpcAnalyst


class RecordingAnalysis(pb_grpc.AnalysisServiceServicer):
    """Answers with what it was asked, and records the credentials."""

    def __init__(self) -> None:
        self.credentials: list[str] = []

    def _record(self, context: Any) -> None:
        self.credentials += [text for key, text in context.invocation_metadata() if "auth" in key]

    async def MeasureImportance(self, request: Any, context: Any) -> Any:
        self._record(context)
        return pb.MeasureImportanceResponse(outcomes=len(request.outcomes))

    async def FindParetoFront(self, request: Any, context: Any) -> Any:
        self._record(context)
        return pb.FindParetoFrontResponse(trial_ids=[one.trial_id for one in request.outcomes])

    async def CheckConfigurations(self, request: Any, context: Any) -> Any:
        self._record(context)
        return pb.CheckConfigurationsResponse(broken=["", "x > y"])


@pytest.fixture
async def servicer() -> RecordingAnalysis:
    return RecordingAnalysis()


@pytest.fixture
async def channel(servicer: RecordingAnalysis) -> AsyncIterator[grpc.aio.Channel]:
    server = grpc.aio.server()
    pb_grpc.add_AnalysisServiceServicer_to_server(servicer, server)  # type: ignore[no-untyped-call, unused-ignore] # generated code
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as opened:
        yield opened
    await server.stop(None)


async def test_every_analysis_is_called_with_the_token(
    channel: grpc.aio.Channel, servicer: RecordingAnalysis
) -> None:
    analyst = GrpcAnalyst(channel, "secret")
    outcomes = [pb.Outcome(trial_id="t1"), pb.Outcome(trial_id="t2")]

    importance = await analyst.importance(pb.MeasureImportanceRequest(outcomes=outcomes))
    front = await analyst.front(pb.FindParetoFrontRequest(outcomes=outcomes))
    broken = await analyst.broken(pb.CheckConfigurationsRequest())

    assert importance.outcomes == 2
    assert list(front.trial_ids) == ["t1", "t2"]
    assert broken == ["", "x > y"]
    assert len(servicer.credentials) == 3
    assert all("secret" in text for text in servicer.credentials)


async def test_a_dispatcher_that_is_away_is_unavailable() -> None:
    async with grpc.aio.insecure_channel("127.0.0.1:1") as channel:
        with pytest.raises(UnavailableError):
            await GrpcAnalyst(channel, None).broken(pb.CheckConfigurationsRequest())
