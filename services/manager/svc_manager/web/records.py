"""What REST answers: experiments, trials and metrics as NNI's clients know them.

Names are camelCase, instants are milliseconds since 1970, a record says what its NNI
counterpart says and may say more.
"""

from __future__ import annotations

from typing import Any, Final

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import experiment_pb2, experiment_service_pb2
from nni_proto.trial.v1 import trial_pb2, trial_service_pb2
from svc_manager.web.config_json import config_to_json, optimize_mode
from svc_manager.web.json_text import to_json
from svc_manager.web.values import (
    experiment_state_name,
    metric_type_name,
    source_name,
    to_ms,
    to_seconds,
    trial_state_name,
    value_of,
)

NOT_ENDED: Final = "N/A"
"""What lists of experiments show instead of an end that has not come."""


def profile(experiment: experiment_pb2.Experiment) -> dict[str, Any]:
    """Return the experiment profile."""
    out: dict[str, Any] = {
        "id": experiment.id,
        "revision": experiment.revision,
        "execDuration": int(to_seconds(experiment.execution_time)),
        "logDir": experiment.directory,
        "nextSequenceId": experiment.next_sequence_id,
        "params": config_to_json(experiment.config),
        "status": experiment_state_name(experiment.state),
        "optimizeMode": optimize_mode(experiment.config),
        "algorithm": experiment.algorithm,
        "repeatable": experiment.repeatable,
    }
    if experiment.HasField("started_at"):
        out["startTime"] = to_ms(experiment.started_at)
    if experiment.HasField("ended_at"):
        out["endTime"] = to_ms(experiment.ended_at)
    if experiment.HasField("best_value"):
        out["bestValue"] = experiment.best_value
        out["bestTrialId"] = experiment.best_trial_id
    return out


def status(experiment: experiment_pb2.Experiment) -> dict[str, Any]:
    """Return the state, what went wrong, and what is waited for."""
    return {
        "status": experiment_state_name(experiment.state),
        "errors": list(experiment.errors),
        "waitingFor": experiment.waiting_for,
    }


def metadata(experiment: experiment_pb2.Experiment, urls: list[str], pid: int) -> dict[str, Any]:
    """Return the line of a list of experiments.

    Args:
        experiment: the experiment.
        urls: addresses of its page; empty if it has no listener.
        pid: process that serves it.
    """
    platforms = [service.platform for service in experiment.config.training_services]
    return {
        "id": experiment.id,
        "name": experiment.config.experiment_name,
        "port": experiment.port or None,
        "status": experiment_state_name(experiment.state),
        "platform": ",".join(platforms),
        "startTime": _ms_or(experiment, "started_at", None),
        "endTime": _ms_or(experiment, "ended_at", NOT_ENDED),
        "tag": [f"{key}={text}" if text else key for key, text in experiment.config.tags.items()],
        "pid": pid,
        "webuiUrl": urls,
        "logDir": experiment.directory,
        "prefixUrl": experiment.url_prefix or None,
        "trialCounts": dict(experiment.trial_counts),
        "bestValue": experiment.best_value if experiment.HasField("best_value") else None,
    }


def trial(message: trial_pb2.Trial) -> dict[str, Any]:
    """Return the record of a trial, with all of its parameters."""
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
        # Text in a list: how NNI's clients have always read them.
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
    _add_details(out, message)
    return out


def _add_details(out: dict[str, Any], message: trial_pb2.Trial) -> None:
    if message.reason:
        out["message"] = message.reason
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
    """Return one report: the six documented fields."""
    return {
        "timestamp": to_ms(message.reported_at),
        "trialJobId": trial_id,
        "parameterId": str(parameter_id),
        "type": metric_type_name(message.type),
        "sequence": message.sequence,
        "data": value_of(message.value),
    }


def trial_metric(message: trial_service_pb2.TrialMetric) -> dict[str, Any]:
    """Return one report of a list that spans trials."""
    return metric(message.trial_id, message.parameter_id, message.metric)


def exported(
    message: experiment_service_pb2.ExportedTrial, *, intermediate: bool
) -> dict[str, Any]:
    """Return one trial in the form that `import-data` takes."""
    out = {
        "parameter": value_of(message.parameters),
        "value": value_of(message.value),
        "id": message.trial_id,
    }
    if intermediate:
        out["intermediate"] = [value_of(value) for value in message.intermediates]
    return out


def explanation(message: trial_service_pb2.ExplainTrialResponse) -> dict[str, Any]:
    """Return why a trial is as it is; null for what does not apply."""
    exists = bool(message.trial_id)
    return {
        "trialJobId": message.trial_id or None,
        "status": trial_state_name(message.state) if exists else None,
        "verdict": _word(trial_service_pb2.Verdict.Name(message.verdict), "VERDICT_"),
        "summary": message.summary,
        "reasons": [
            {
                "kind": _word(trial_service_pb2.ReasonKind.Name(reason.kind), "REASON_KIND_"),
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
                "commandFailed": lost.command_failed,
            }
            for lost in message.lost_attempts
        ],
        "stderrTail": message.stderr_tail,
        "exitCode": message.exit_code if message.HasField("exit_code") else None,
        "signal": message.signal or None,
    }


def _word(name: str, prefix: str) -> str:
    return name.removeprefix(prefix)


def _ms_or(
    experiment: experiment_pb2.Experiment, field: str, otherwise: str | None
) -> int | str | None:
    if not experiment.HasField(field):  # type: ignore[arg-type] # a name of this module
        return otherwise
    return to_ms(getattr(experiment, field))
