"""gRPC servicer of trials."""

from typing import Any, TypeAlias

import grpc.aio

from nni_proto.trial.v1 import trial_service_pb2 as pb
from nni_proto.trial.v1 import trial_service_pb2_grpc as pb_grpc
from svc_manager.usecases.trials import TrialFilter, Trials

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class TrialServicer(pb_grpc.TrialServiceServicer):
    """gRPC servicer of trials: list, kill, add, metrics, counts and explanation.

    Args:
        trials: use cases.
    """

    def __init__(self, trials: Trials) -> None:
        self._trials = trials

    async def ListTrials(
        self, request: pb.ListTrialsRequest, context: Context
    ) -> pb.ListTrialsResponse:
        """Return a page of an experiment's trials by state, id prefix or result, in an order."""
        page = await self._trials.list(
            request.experiment_id,
            TrialFilter(
                states=tuple(request.states),
                id_prefix=request.id_prefix,
                with_result=request.with_result,
                order=request.order,
                descending=request.descending,
            ),
            page_size=request.page_size,
            page_token=request.page_token,
        )
        return pb.ListTrialsResponse(
            trials=page.items, next_page_token=page.next_token, total=page.total
        )

    async def GetTrial(self, request: pb.GetTrialRequest, context: Context) -> pb.GetTrialResponse:
        """Return one trial, with large parameters loaded; raise if it is unknown."""
        trial = await self._trials.get(request.experiment_id, request.trial_id)
        return pb.GetTrialResponse(trial=trial)

    async def KillTrial(
        self, request: pb.KillTrialRequest, context: Context
    ) -> pb.KillTrialResponse:
        """Request the stop of a live trial as USER_CANCELED; return it, maybe still running."""
        trial = await self._trials.kill(request.experiment_id, request.trial_id, request.request_id)
        return pb.KillTrialResponse(trial=trial)

    async def AddTrial(self, request: pb.AddTrialRequest, context: Context) -> pb.AddTrialResponse:
        """Queue a user's parameters for a trial to be created; return their parameter id."""
        parameter_id = await self._trials.add(
            request.experiment_id, request.parameters, request.request_id
        )
        return pb.AddTrialResponse(parameter_id=parameter_id)

    async def ListMetrics(
        self, request: pb.ListMetricsRequest, context: Context
    ) -> pb.ListMetricsResponse:
        """Return a page of the metrics of one or all trials, by type."""
        page = await self._trials.metrics(
            request.experiment_id,
            request.trial_id,
            request.type,
            page_size=request.page_size,
            page_token=request.page_token,
        )
        return pb.ListMetricsResponse(metrics=page.items, next_page_token=page.next_token)

    async def CountTrials(
        self, request: pb.CountTrialsRequest, context: Context
    ) -> pb.CountTrialsResponse:
        """Return the number of an experiment's trials in each state."""
        counts = await self._trials.counts(request.experiment_id)
        return pb.CountTrialsResponse(counts=counts)

    async def ExplainTrial(
        self, request: pb.ExplainTrialRequest, context: Context
    ) -> pb.ExplainTrialResponse:
        """Explain the state of a trial, or without an id why the next one is not created."""
        return await self._trials.explain(request.experiment_id, request.trial_id)
