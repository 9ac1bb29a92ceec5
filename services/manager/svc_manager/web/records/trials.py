"""REST records of trials, metrics and explanations, with the field names of NNI's clients."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from nni_proto.common.v1 import metric_pb2
from nni_proto.trial.v1 import cause_pb2, trial_pb2, trial_service_pb2
from svc_manager.web.records.encoding import to_json
from svc_manager.web.records.remarks import remarks_record
from svc_manager.web.records.scalars import (
    metric_type_name,
    source_name,
    to_ms,
    trial_state_name,
    value_of,
)


def trial(message: trial_pb2.Trial) -> dict[str, Any]:
    """Convert a proto trial to the JSON record of NNI's REST API."""
    parameters = {
        "parameter_id": message.parameter_id,
        "parameter_source": source_name(message.source),
        "parameters": value_of(message.parameters),
        "parameter_index": 0,
    }
    out: dict[str, Any] = {
        "trialJobId": message.id,
        "sequenceId": message.sequence_id,
        "status": trial_state_name(message.state),
        # A list of JSON texts, as NNI's clients parse it.
        "hyperParameters": [to_json(parameters)],
        "logPath": message.directory,
        "stderrPath": f"{message.directory}/stderr",
        "attempt": message.attempt,
        "intermediateCount": message.intermediate_count,
        "createdTime": to_ms(message.created_at),
    }
    if message.HasField("started_at"):
        out["startTime"] = to_ms(message.started_at)
    if message.HasField("ended_at"):
        out["endTime"] = to_ms(message.ended_at)
    if message.HasField("final_metric"):
        out["finalMetricData"] = [metric(message.id, message.parameter_id, message.final_metric)]
    if message.HasField("last_intermediate"):
        out["latestIntermediate"] = value_of(message.last_intermediate.value)
    if message.HasField("remarks"):
        out["remarks"] = remarks_record(message.remarks)
    _add_details(out, message)
    return out


def _add_details(out: dict[str, Any], message: trial_pb2.Trial) -> None:
    if message.reason:
        out["message"] = message.reason
    if message.end.cause:
        out["endCause"] = _enum_value(cause_pb2.EndCause, message.end.cause, "END_CAUSE_")
    if message.stop.cause:
        out["stopCause"] = _enum_value(cause_pb2.StopCause, message.stop.cause, "STOP_CAUSE_")
    if message.wait.cause:
        out["waitCause"] = _enum_value(cause_pb2.WaitCause, message.wait.cause, "WAIT_CAUSE_")
    if message.HasField("exit_code"):
        out["exitCode"] = message.exit_code
    if message.runner_id:
        out["runnerId"] = message.runner_id
    if message.platform:
        out["platform"] = message.platform
    if message.gpu_indices:
        out["gpuIndices"] = list(message.gpu_indices)
    if message.HasField("provenance"):
        out["provenance"] = value_of(message.provenance)


def metric(trial_id: str, parameter_id: int, message: metric_pb2.Metric) -> dict[str, Any]:
    """Convert a proto metric to NNI's JSON record: time, trial, type, sequence, data."""
    return {
        "timestamp": to_ms(message.reported_at),
        "trialJobId": trial_id,
        "parameterId": str(parameter_id),
        "type": metric_type_name(message.type),
        "sequence": message.sequence,
        "data": value_of(message.value),
    }


def trial_metric(message: trial_service_pb2.TrialMetric) -> dict[str, Any]:
    """Convert a metric that names its trial to the record of `metric`."""
    return metric(message.trial_id, message.parameter_id, message.metric)


def explanation(message: trial_service_pb2.ExplainTrialResponse) -> dict[str, Any]:
    """Convert the explanation of a trial's state to JSON; fields that do not apply are null."""
    exists = bool(message.trial_id)
    return {
        "trialJobId": message.trial_id or None,
        "status": trial_state_name(message.state) if exists else None,
        "verdict": _enum_value(trial_service_pb2.Verdict, message.verdict, "VERDICT_"),
        "summary": message.summary,
        "reasons": [
            {
                "kind": _enum_value(trial_service_pb2.ReasonKind, reason.kind, "REASON_KIND_"),
                "text": reason.text,
                "remedy": reason.remedy,
            }
            for reason in message.reasons
        ],
        "lostAttempts": [
            {
                "attempt": lost.attempt,
                "runnerId": lost.runner_id,
                "reason": lost.reason,
                "cause": _enum_value(cause_pb2.LossCause, lost.loss.cause, "LOSS_CAUSE_"),
                "commandFailed": lost.command_failed,
            }
            for lost in message.lost_attempts
        ],
        "stderrTail": message.stderr_tail,
        "exitCode": message.exit_code if message.HasField("exit_code") else None,
        "signal": message.signal or None,
    }


@lru_cache(maxsize=256)  # protobuf takes longer, and each trial has causes
def _enum_value(enum: Any, number: int, prefix: str) -> str:  # noqa: ANN401 - wrappers of protobuf have no common type
    return str(enum.Name(number)).removeprefix(prefix)
