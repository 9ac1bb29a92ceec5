"""gRPC servicer of shared studies."""

from datetime import timedelta
from typing import Any, TypeAlias

import grpc.aio

from nni_proto.experiment.v1 import study_service_pb2 as pb
from nni_proto.experiment.v1 import study_service_pb2_grpc as pb_grpc
from svc_manager.domain.callers import Claim
from svc_manager.usecases.shared_studies import SharedStudies

Context: TypeAlias = grpc.aio.ServicerContext[Any, Any]


class StudyServicer(pb_grpc.StudyServiceServicer):
    """gRPC servicer of shared studies: ask for a trial, tell its final result, renew leases.

    Args:
        studies: use cases.
    """

    def __init__(self, studies: SharedStudies) -> None:
        self._studies = studies

    async def AskTrial(self, request: pb.AskTrialRequest, context: Context) -> pb.AskTrialResponse:
        """Start the next trial for a caller and return it; wait for parameters without limit."""
        asked = await self._studies.ask(
            request.experiment_id,
            request.request_id,
            request.caller_id,
            request.parameters if request.HasField("parameters") else None,
        )
        response = pb.AskTrialResponse(trial=asked.trial, attempt=asked.attempt)
        response.lease.FromTimedelta(timedelta(milliseconds=asked.lease_ms))
        return response

    async def TellTrial(
        self, request: pb.TellTrialRequest, context: Context
    ) -> pb.TellTrialResponse:
        """End a trial with its final result, as failed or stopped early; repeated: do nothing."""
        failed = request.WhichOneof("outcome") == "failure"
        await self._studies.tell(
            request.experiment_id,
            request.trial_id,
            request.attempt,
            request.failure if failed else request.value,
            stopped=request.stopped,
        )
        return pb.TellTrialResponse()

    async def RenewLeases(
        self, request: pb.RenewLeasesRequest, context: Context
    ) -> pb.RenewLeasesResponse:
        """Renew a caller's leases; return ids of trials that it holds no more, and the lease."""
        renewed = await self._studies.renew(
            request.experiment_id,
            request.caller_id,
            [Claim(trial.trial_id, trial.attempt) for trial in request.trials],
        )
        response = pb.RenewLeasesResponse(lost_trial_ids=renewed.lost_trial_ids)
        response.lease.FromTimedelta(timedelta(milliseconds=renewed.lease_ms))
        return response
