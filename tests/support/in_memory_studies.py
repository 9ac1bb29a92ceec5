"""Shared studies of the manager in this process, whose tuner counts: `{"x": 0}`, `{"x": 1}`."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import grpc

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import experiment_pb2, study_service_pb2, study_service_pb2_grpc
from nni_proto.trial.v1 import trial_pb2
from nni_wire.metadata import ERROR_DETAILS_KEY

if TYPE_CHECKING:
    from tests.support.in_memory_manager import InMemoryManager

LEASE_S = 60
_LAPSED = "lapsed"


class InMemoryStudies(study_service_pb2_grpc.StudyServiceServicer):
    """Trials that callers run; leases lapse when a test says so."""

    def __init__(self, manager: InMemoryManager) -> None:
        self._manager = manager
        self.renewals: list[study_service_pb2.RenewLeasesRequest] = []
        self.lease_s: float = LEASE_S
        self.renewed: Callable[[], None] = lambda: None
        """Called at each renewal of leases."""
        self.told: Callable[[], None] = lambda: None
        """Called when a trial has ended, before the caller gets the answer."""
        self.trial_limit = 100
        self.asks: dict[str, trial_pb2.Trial] = {}

    def lapse(self, trial: trial_pb2.Trial) -> None:
        """End a trial as one whose lease has lapsed."""
        trial.state = trial_pb2.TRIAL_STATE_FAILED
        trial.end.detail = _LAPSED

    def _refuse(self, context: Any, reason: str) -> None:
        details = json.dumps({"reason": reason}).encode()
        context.set_trailing_metadata(((ERROR_DETAILS_KEY, details),))
        context.abort(grpc.StatusCode.FAILED_PRECONDITION, f"refused: {reason}")

    def AskTrial(self, request: Any, context: Any) -> Any:
        experiment = self._manager.known[request.experiment_id]
        trials = self._manager.trials[request.experiment_id]
        if experiment.state == experiment_pb2.EXPERIMENT_STATE_STOPPED:
            self._refuse(context, "STOPPED")
        if len(trials) >= self.trial_limit:
            self._refuse(context, "NO_MORE_TRIAL")
        trial = self.asks.get(request.request_id)
        if trial is None:
            trial = self._manager.add_trial(
                request.experiment_id, f"tr{len(trials):03}", state=trial_pb2.TRIAL_STATE_RUNNING
            )
            trial.runner_id = request.caller_id
            trial.attempt = 1
            if request.HasField("parameters"):
                trial.parameters.CopyFrom(request.parameters)
            self.asks[request.request_id] = trial
        answer = study_service_pb2.AskTrialResponse(trial=trial, attempt=1)
        answer.lease.FromTimedelta(timedelta(seconds=self.lease_s))
        return answer

    def TellTrial(self, request: Any, context: Any) -> Any:
        (trial,) = (
            one for one in self._manager.trials[request.experiment_id] if one.id == request.trial_id
        )
        if trial.HasField("end"):
            same = trial.HasField("final_metric") and trial.final_metric.value == request.value
            if trial.end.detail == _LAPSED:
                self._refuse(context, "LEASE_LAPSED")
            if not same:
                context.abort(grpc.StatusCode.INVALID_ARGUMENT, "value must be the one told before")
            return study_service_pb2.TellTrialResponse()
        trial.ended_at.FromSeconds(1_000 + len(self._manager.trials[request.experiment_id]))
        if request.WhichOneof("outcome") == "failure":
            stopped, failed = trial_pb2.TRIAL_STATE_EARLY_STOPPED, trial_pb2.TRIAL_STATE_FAILED
            trial.state = stopped if request.stopped else failed
            trial.end.detail = request.failure
        else:
            trial.state = trial_pb2.TRIAL_STATE_SUCCEEDED
            trial.final_metric.CopyFrom(
                metric_pb2.Metric(type=metric_pb2.METRIC_TYPE_FINAL, value=request.value)
            )
            trial.end.SetInParent()
        self.told()
        return study_service_pb2.TellTrialResponse()

    def RenewLeases(self, request: Any, context: Any) -> Any:
        self.renewals.append(request)
        self.renewed()
        ended = {
            trial.id
            for trial in self._manager.trials[request.experiment_id]
            if trial.state != trial_pb2.TRIAL_STATE_RUNNING
        }
        lost = [held.trial_id for held in request.trials if held.trial_id in ended]
        return study_service_pb2.RenewLeasesResponse(lost_trial_ids=lost)
