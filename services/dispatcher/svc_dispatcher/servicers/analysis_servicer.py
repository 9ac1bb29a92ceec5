"""gRPC servicer of `nni_proto.tuning.v1.AnalysisService`."""

import asyncio
from typing import Any

import grpc.aio

from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from nni_proto.tuning.v1 import analysis_service_pb2_grpc as pb_grpc
from svc_common.large_work import encoded
from svc_dispatcher.converters.algorithm_requests import (
    plain_objective,
    plain_value,
    trial_outcomes,
)
from svc_dispatcher.domain.values import Check
from svc_dispatcher.ports import Checks
from svc_dispatcher.usecases.analyses import Analyses

_Context = grpc.aio.ServicerContext[Any, Any]


class AnalysisServicer(pb_grpc.AnalysisServiceServicer):
    """gRPC servicer of importance, Pareto front and constraint checks; converts messages.

    Args:
        analyses: use cases.
        checks: runs the analyses whose time depends on the request.
    """

    def __init__(self, analyses: Analyses, checks: Checks) -> None:
        self._analyses = analyses
        self._checks = checks

    async def MeasureImportance(
        self, request: pb.MeasureImportanceRequest, context: _Context
    ) -> pb.MeasureImportanceResponse:
        """Return each hyperparameter's, and interactions', share of a metric's variance."""
        del context
        found = await self._analyses.importance(
            await asyncio.to_thread(plain_value, request.search_space, "search_space"),
            await asyncio.to_thread(trial_outcomes, request.outcomes),
            plain_objective(request.objective),
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
        """Return the trials that no other one dominates, and counts of results left out."""
        del context
        found = await self._checks.run(Check.FRONT, await encoded(request), "outcomes")
        return pb.FindParetoFrontResponse(
            trial_ids=found["trial_ids"],
            infeasible=found["infeasible"],
            incomplete=found["incomplete"],
        )

    async def CheckConfigurations(
        self, request: pb.CheckConfigurationsRequest, context: _Context
    ) -> pb.CheckConfigurationsResponse:
        """Return for each configuration the constraint of the space that it violates, or empty."""
        del context
        found = await self._checks.run(Check.CONFIGURATIONS, await encoded(request), "search_space")
        return pb.CheckConfigurationsResponse(broken=found["broken"])
