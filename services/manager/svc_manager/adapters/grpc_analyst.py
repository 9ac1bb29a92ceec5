"""`Analyst` over the dispatcher's gRPC service."""

from collections.abc import Awaitable, Sequence
from typing import Final, TypeVar

import grpc.aio

from nni_proto.tuning.v1 import analysis_service_pb2 as pb
from nni_proto.tuning.v1 import analysis_service_pb2_grpc as pb_grpc
from svc_common.rpc.client import service_error, token_metadata

_DEADLINE_S: Final = 60.0
"""A model of 2,000 trials takes seconds, and concurrent requests are queued."""

_T = TypeVar("_T")


class GrpcAnalyst:
    """gRPC client of the dispatcher's analyses: importance, Pareto front, constraints.

    Args:
        channel: to the dispatcher; the caller closes it.
        token: of the installation; None: the dispatcher needs none.
    """

    def __init__(self, channel: grpc.aio.Channel, token: str | None) -> None:
        self._stub = pb_grpc.AnalysisServiceStub(channel)
        self._credentials = token_metadata(token)

    async def importance(
        self, request: pb.MeasureImportanceRequest
    ) -> pb.MeasureImportanceResponse:
        """Request each hyperparameter's importance from the dispatcher over gRPC; return it."""
        return await _translated(
            self._stub.MeasureImportance(request, timeout=_DEADLINE_S, metadata=self._credentials)
        )

    async def front(self, request: pb.FindParetoFrontRequest) -> pb.FindParetoFrontResponse:
        """Request the Pareto front from the dispatcher over gRPC; return trials' ids and counts."""
        return await _translated(
            self._stub.FindParetoFront(request, timeout=_DEADLINE_S, metadata=self._credentials)
        )

    async def broken(self, request: pb.CheckConfigurationsRequest) -> Sequence[str]:
        """Return the constraint that each configuration breaks, by the dispatcher; empty: none."""
        answer = await _translated(
            self._stub.CheckConfigurations(request, timeout=_DEADLINE_S, metadata=self._credentials)
        )
        return list(answer.broken)


async def _translated(call: Awaitable[_T]) -> _T:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        raise service_error(error) from error
