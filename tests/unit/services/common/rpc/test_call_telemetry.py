"""Log fields and metrics of gRPC calls."""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import grpc
import grpc.aio
import pytest
import structlog

from nni_proto.trial.v1 import trial_service_pb2 as pb
from nni_proto.trial.v1 import trial_service_pb2_grpc as pb_grpc
from svc_common.errors import NotFoundError
from svc_common.logs import configure, get_logger
from svc_common.rpc.call_telemetry import CallMetrics
from svc_common.rpc.server import GrpcServer
from svc_common.telemetry.metrics import Registry
from tests.support.wait import until

GET = "/nni_proto.trial.v1.TrialService/GetTrial"


class Talkative(pb_grpc.TrialServiceServicer):
    """Servicer that writes a log line in every call, and knows one trial."""

    async def GetTrial(self, request: pb.GetTrialRequest, context: Any) -> pb.GetTrialResponse:
        get_logger().info("looked up")
        if request.trial_id != "known":
            raise NotFoundError("trial", request.trial_id)
        return pb.GetTrialResponse()


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    structlog.reset_defaults()
    stream = io.StringIO()
    configure("test", stream=stream)
    yield stream
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


@pytest.fixture
def metrics() -> CallMetrics:
    return CallMetrics(Registry())


@pytest.fixture
async def stub(lines: io.StringIO, metrics: CallMetrics) -> AsyncIterator[Any]:
    server = GrpcServer(["nni_proto.trial.v1.TrialService"], None, metrics=metrics)
    servicer = Talkative()  # type: ignore[abstract] # no test calls the other methods
    server.register(lambda raw: pb_grpc.add_TrialServiceServicer_to_server(servicer, raw))
    port = await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield pb_grpc.TrialServiceStub(channel)
    await server.stop(0)


async def test_log_lines_of_a_call_have_its_ids(stub: Any, lines: io.StringIO) -> None:
    request = pb.GetTrialRequest(experiment_id="exp1", trial_id="known")

    await stub.GetTrial(request, metadata=[("x-request-id", "r-1")])
    await stub.GetTrial(request)

    first, second = (json.loads(line) for line in lines.getvalue().splitlines())
    assert (first["experiment"], first["trial"], first["request"]) == ("exp1", "known", "r-1")
    assert len(second["request"]) == 8


async def test_calls_are_counted_by_status(stub: Any, metrics: CallMetrics) -> None:
    await stub.GetTrial(pb.GetTrialRequest(trial_id="known"))
    with pytest.raises(grpc.aio.AioRpcError):
        await stub.GetTrial(pb.GetTrialRequest(trial_id="other"))
    # The client has the response before the call has ended on the server.
    await asyncio.to_thread(until, lambda: metrics.seconds.count(GET) == 2, 10)

    assert metrics.calls.value(GET, "OK") == 1
    assert metrics.calls.value(GET, "NOT_FOUND") == 1
    assert metrics.seconds.count(GET) == 2
