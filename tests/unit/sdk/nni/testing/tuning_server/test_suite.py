"""The suite for tuning servers finds what it is there to find."""

import itertools
from typing import Any

import grpc.aio
import pytest

from nni.testing.tuning_server import TuningServerConformance
from nni_proto.tuning.v1 import tuning_service_pb2 as pb
from nni_wire.values import from_value, to_value
from tests.support.tuning_server import TuningServer, tuning_server_in_thread

Context = grpc.aio.ServicerContext[Any, Any]
DRAWS = itertools.count()


class EchoesOtherIds(TuningServer):
    async def GenerateParameters(
        self, request: pb.GenerateParametersRequest, context: Context
    ) -> pb.GenerateParametersResponse:
        answer = await super().GenerateParameters(request, context)
        for one in answer.suggestions:
            one.parameter_id += 1
        return answer


class AnswersTwice(TuningServer):
    async def GenerateParameters(
        self, request: pb.GenerateParametersRequest, context: Context
    ) -> pb.GenerateParametersResponse:
        answer = await super().GenerateParameters(request, context)
        answer.suggestions.extend(list(answer.suggestions))
        return answer


class AnswersFewer(TuningServer):
    async def GenerateParameters(
        self, request: pb.GenerateParametersRequest, context: Context
    ) -> pb.GenerateParametersResponse:
        del request.parameter_ids[1:]
        return await super().GenerateParameters(request, context)


class MakesIntegersFloats(TuningServer):
    async def GenerateParameters(
        self, request: pb.GenerateParametersRequest, context: Context
    ) -> pb.GenerateParametersResponse:
        answer = await super().GenerateParameters(request, context)
        for one in answer.suggestions:
            given = from_value(one.parameters)
            if "units" in given:
                one.parameters.CopyFrom(to_value(given | {"units": float(given["units"])}))
        return answer


class ForgetsTheSeed(TuningServer):
    async def OpenSession(
        self, request: pb.OpenSessionRequest, context: Context
    ) -> pb.OpenSessionResponse:
        request.seed += 1000 * next(DRAWS)
        return await super().OpenSession(request, context)


class KeepsTheOldSpace(TuningServer):
    async def UpdateSearchSpace(
        self, request: pb.UpdateSearchSpaceRequest, context: Context
    ) -> pb.UpdateSearchSpaceResponse:
        await self._tuner(request.session_id, context)
        return pb.UpdateSearchSpaceResponse()


class WantsNumbers(TuningServer):
    async def ReportMetric(
        self, request: pb.ReportMetricRequest, context: Context
    ) -> pb.ReportMetricResponse:
        if request.metric.value.WhichOneof("kind") not in {"float_value", "int_value"}:
            await context.abort(grpc.StatusCode.INTERNAL, "no number")
        return await super().ReportMetric(request, context)


class KeepsClosedSessions(TuningServer):
    async def CloseSession(
        self, request: pb.CloseSessionRequest, context: Context
    ) -> pb.CloseSessionResponse:
        return pb.CloseSessionResponse()


FAULTS = {
    EchoesOtherIds: "test_answer_is_for_the_ids_that_were_asked",
    AnswersTwice: "test_answer_is_for_the_ids_that_were_asked",
    AnswersFewer: "test_answer_is_for_the_ids_that_were_asked",
    MakesIntegersFloats: "test_parameters_lie_in_the_space",
    ForgetsTheSeed: "test_same_seed_and_calls_give_the_same_parameters",
    KeepsTheOldSpace: "test_changed_space_holds_for_what_comes_next",
    WantsNumbers: "test_any_reported_value_is_taken",
    KeepsClosedSessions: "test_closed_session_is_gone_and_closing_it_again_is_no_error",
}


@pytest.mark.parametrize(
    ("server", "test"), FAULTS.items(), ids=lambda one: getattr(one, "__name__", "")
)
def test_fault_fails_the_test_that_is_about_it(server: type[TuningServer], test: str) -> None:
    with tuning_server_in_thread(server()) as served_at:

        class Served(TuningServerConformance):
            def address(self) -> str:
                return served_at

        with pytest.raises((AssertionError, grpc.RpcError)):
            getattr(Served(), test)()
