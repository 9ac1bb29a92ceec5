"""gRPC servicer of `nni_proto.tuning.v1.AnalysisService`."""

import asyncio
from typing import Any

import grpc.aio

from nni.hpo.objectives import DEFAULT_METRIC, Objective, OutcomeLimit
from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from nni_proto.tuning.v1 import analysis_service_pb2_grpc as pb_grpc
from nni_wire.values import check_value, from_value
from svc_common.errors import InvalidArgumentError
from svc_dispatcher.ports import TrialOutcome
from svc_dispatcher.usecases.analyses import Analyses

_Context = grpc.aio.ServicerContext[Any, Any]


class AnalysisServicer(pb_grpc.AnalysisServiceServicer):
    """gRPC servicer of analyses; see the proto.

    Args:
        analyses: use cases.
    """

    def __init__(self, analyses: Analyses) -> None:
        self._analyses = analyses

    async def MeasureImportance(
        self, request: pb.MeasureImportanceRequest, context: _Context
    ) -> pb.MeasureImportanceResponse:
        """See the proto."""
        del context
        found = await self._analyses.importance(
            _given(request.search_space, "search_space"),
            await asyncio.to_thread(_outcomes, request.outcomes),
            _objective(request.objective),
        )
        return pb.MeasureImportanceResponse(
            parameters=[
                pb.ParameterImportance(name=name, share=share) for name, share in found.shares
            ],
            interactions=found.interactions,
            outcomes=found.outcomes,
        )

    async def FindParetoFront(
        self, request: pb.FindParetoFrontRequest, context: _Context
    ) -> pb.FindParetoFrontResponse:
        """See the proto."""
        del context
        found = await asyncio.to_thread(
            lambda: self._analyses.front(
                _outcomes(request.outcomes),
                list(map(_objective, request.objectives)),
                [OutcomeLimit(limit.metric, limit.max) for limit in request.constraints],
            )
        )
        return pb.FindParetoFrontResponse(
            trial_ids=found.trial_ids, infeasible=found.infeasible, incomplete=found.incomplete
        )

    async def CheckConfigurations(
        self, request: pb.CheckConfigurationsRequest, context: _Context
    ) -> pb.CheckConfigurationsResponse:
        """See the proto."""
        del context
        broken = await asyncio.to_thread(
            lambda: self._analyses.broken(
                _given(request.search_space, "search_space"),
                [_given(value, "configurations") for value in request.configurations],
            )
        )
        return pb.CheckConfigurationsResponse(broken=broken)


def _outcomes(messages: Any) -> list[TrialOutcome]:  # noqa: ANN401 - a repeated field
    return [
        TrialOutcome(
            message.trial_id,
            _given(message.parameters, "outcomes.parameters"),
            _given(message.metric, "outcomes.metric"),
        )
        for message in messages
    ]


def _objective(message: metric_pb2.Objective) -> Objective:
    return Objective(
        message.metric or DEFAULT_METRIC,
        "maximize" if message.mode == metric_pb2.OPTIMIZE_MODE_MAXIMIZE else "minimize",
    )


def _given(value: value_pb2.Value, field: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        check_value(value)
    except ValueError as error:
        raise InvalidArgumentError(field, f"must be a readable value ({error})") from None
    return from_value(value)
