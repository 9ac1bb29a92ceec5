"""External algorithm: random search behind `nni_proto.tuning.v1.TuningService`."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import grpc.aio

from nni.hpo.registry import factory
from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.trial.v1 import trial_pb2
from nni_proto.tuning.v1 import tuning_service_pb2 as pb
from nni_proto.tuning.v1 import tuning_service_pb2_grpc as pb_grpc
from nni_wire.values import from_value, to_value


class TuningServer(pb_grpc.TuningServiceServicer):
    """Sessions of random search that advise to stop every trial whose metric is negative.

    Attributes:
        calls: names of the calls with their main arguments, in order.
        broken: makes `GenerateParameters` fail.
        garbled: makes it answer with an invalid value.
    """

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.broken = False
        self.garbled = False
        self._tuners: dict[str, Any] = {}
        self._opened = 0

    async def _tuner(self, session_id: str, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        if session_id not in self._tuners:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no session {session_id}")
        return self._tuners[session_id]

    async def OpenSession(
        self, request: pb.OpenSessionRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.OpenSessionResponse:
        arguments = from_value(request.class_args) or {}
        if "bad" in arguments:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, "bad is no argument")
        session_id = f"session-{self._opened}"
        tuner = factory.create("tuner", "Random", {}, request.seed)
        try:
            tuner.update_search_space(from_value(request.search_space))
        except ValueError as error:
            await context.abort(grpc.StatusCode.INVALID_ARGUMENT, str(error))
        self._opened += 1
        self._tuners[session_id] = tuner
        self.calls.append(("open", request.experiment_id))
        return pb.OpenSessionResponse(session_id=session_id, lookahead=True, assesses=True)

    async def GenerateParameters(
        self, request: pb.GenerateParametersRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.GenerateParametersResponse:
        if self.broken:
            await context.abort(grpc.StatusCode.INTERNAL, "broken")
        tuner = await self._tuner(request.session_id, context)
        if self.garbled:
            wrong = value_pb2.Value(big_int_value="many")
            ids = request.parameter_ids
            return pb.GenerateParametersResponse(
                suggestions=[pb.Suggestion(parameter_id=id_, parameters=wrong) for id_ in ids]
            )
        return pb.GenerateParametersResponse(
            suggestions=[
                pb.Suggestion(parameter_id=id_, parameters=to_value(tuner.generate_parameters(id_)))
                for id_ in request.parameter_ids
            ]
        )

    async def ReportMetric(
        self, request: pb.ReportMetricRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.ReportMetricResponse:
        await self._tuner(request.session_id, context)
        value = from_value(request.metric.value)
        final = request.metric.type == metric_pb2.METRIC_TYPE_FINAL
        self.calls.append(("metric", request.trial_id, value, final))
        return pb.ReportMetricResponse(stop=isinstance(value, int | float) and value < 0)

    async def EndTrial(
        self, request: pb.EndTrialRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.EndTrialResponse:
        await self._tuner(request.session_id, context)
        end_state = trial_pb2.TrialState.Name(request.end_state)
        assert end_state == f"TRIAL_STATE_{request.state}"
        self.calls.append(("end", request.trial_id, request.state))
        return pb.EndTrialResponse()

    async def ImportData(
        self, request: pb.ImportDataRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.ImportDataResponse:
        await self._tuner(request.session_id, context)
        self.calls.append(("import", from_value(request.data)))
        return pb.ImportDataResponse()

    async def UpdateSearchSpace(
        self, request: pb.UpdateSearchSpaceRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.UpdateSearchSpaceResponse:
        tuner = await self._tuner(request.session_id, context)
        tuner.update_search_space(from_value(request.search_space))
        return pb.UpdateSearchSpaceResponse()

    async def CloseSession(
        self, request: pb.CloseSessionRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> pb.CloseSessionResponse:
        del context
        self._tuners.pop(request.session_id, None)
        self.calls.append(("close", request.session_id))
        return pb.CloseSessionResponse()


@asynccontextmanager
async def tuning_server(
    servicer: TuningServer | None = None,
) -> AsyncIterator[tuple[TuningServer, str]]:
    """Serve on a free port; yield the servicer and its address."""
    server = grpc.aio.server()
    servicer = TuningServer() if servicer is None else servicer
    pb_grpc.add_TuningServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield servicer, f"127.0.0.1:{port}"
    finally:
        await server.stop(None)


@contextmanager
def tuning_server_in_thread(servicer: TuningServer) -> Iterator[str]:
    """Serve on a loop in a thread, for blocking callers; yield the address."""
    loop = asyncio.new_event_loop()
    ready, stop = threading.Event(), asyncio.Event()
    addresses: list[str] = []

    async def serve() -> None:
        async with tuning_server(servicer) as (_, address):
            addresses.append(address)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(10)
    try:
        yield addresses[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
