"""An external algorithm: random search behind `nni_proto.tuning.v1.TuningService`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc.aio

from nni.hpo import registry
from nni_proto.common.v1 import metric_pb2
from nni_proto.tuning.v1 import tuning_service_pb2 as pb
from nni_proto.tuning.v1 import tuning_service_pb2_grpc as pb_grpc
from nni_wire.values import from_value, to_value


class TuningServer(pb_grpc.TuningServiceServicer):
    """Sessions of random search that advise to stop every trial whose report is negative.

    Attributes:
        calls: names of the calls and what matters of them, in order.
        broken: makes `GenerateParameters` fail.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.broken = False
        self._tuners: dict[str, Any] = {}

    async def OpenSession(
        self, request: pb.OpenSessionRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.OpenSessionResponse:
        arguments = from_value(request.class_args) or {}
        if "bad" in arguments:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "bad is no argument")
        session_id = f"session-{len(self._tuners)}"
        tuner = registry.create("tuner", "Random", {}, request.seed)
        tuner.update_search_space(from_value(request.search_space))
        self._tuners[session_id] = tuner
        self.calls.append(("open", request.experiment_id))
        return pb.OpenSessionResponse(session_id=session_id, lookahead=True, assesses=True)

    async def GenerateParameters(
        self, request: pb.GenerateParametersRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.GenerateParametersResponse:
        if self.broken:
            await context.abort(grpc.StatusCode.INTERNAL, "broken")
        tuner = self._tuners[request.session_id]
        return pb.GenerateParametersResponse(
            suggestions=[
                pb.Suggestion(parameter_id=id_, parameters=to_value(tuner.generate_parameters(id_)))
                for id_ in request.parameter_ids
            ]
        )

    async def ReportMetric(
        self, request: pb.ReportMetricRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.ReportMetricResponse:
        del context
        value = from_value(request.metric.value)
        final = request.metric.type == metric_pb2.METRIC_TYPE_FINAL
        self.calls.append(("metric", request.trial_id, value, final))
        return pb.ReportMetricResponse(stop=value < 0)

    async def EndTrial(
        self, request: pb.EndTrialRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.EndTrialResponse:
        del context
        self.calls.append(("end", request.trial_id, request.state))
        return pb.EndTrialResponse()

    async def ImportData(
        self, request: pb.ImportDataRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.ImportDataResponse:
        del context
        self.calls.append(("import", from_value(request.data)))
        return pb.ImportDataResponse()

    async def UpdateSearchSpace(
        self, request: pb.UpdateSearchSpaceRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.UpdateSearchSpaceResponse:
        del context
        self._tuners[request.session_id].update_search_space(from_value(request.search_space))
        return pb.UpdateSearchSpaceResponse()

    async def CloseSession(
        self, request: pb.CloseSessionRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.CloseSessionResponse:
        del context
        self.calls.append(("close", request.session_id))
        return pb.CloseSessionResponse()


@asynccontextmanager
async def tuning_server() -> AsyncIterator[tuple[TuningServer, str]]:
    """Serve on a free port; give the servicer and its address."""
    server = grpc.aio.server()
    servicer = TuningServer()
    pb_grpc.add_TuningServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield servicer, f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
