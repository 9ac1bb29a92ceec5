"""REST records of experiments, with the field names of NNI's clients."""

from __future__ import annotations

from typing import Any, Final

from nni_proto.experiment.v1 import experiment_pb2, experiment_service_pb2
from svc_manager.web.records.agent_limits import agent_limits_to_json
from svc_manager.web.records.config import config_to_json, optimize_mode
from svc_manager.web.records.remarks import remarks_record
from svc_manager.web.records.scalars import (
    experiment_state_name,
    to_ms,
    to_seconds,
    value_of,
)

NOT_ENDED: Final = "N/A"
"""`endTime` of an experiment that has not ended, in lists of experiments."""


def profile(experiment: experiment_pb2.Experiment) -> dict[str, Any]:
    """Return an experiment as NNI's profile JSON: configuration, state, progress, best result."""
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
    if experiment.HasField("remarks"):
        out["remarks"] = remarks_record(experiment.remarks)
    if experiment.HasField("agent_limits"):
        out["agentLimits"] = agent_limits_to_json(experiment.agent_limits)
    return out


def status(experiment: experiment_pb2.Experiment) -> dict[str, Any]:
    """Return JSON of an experiment's state, its errors, and the reason for waiting."""
    return {
        "status": experiment_state_name(experiment.state),
        "errors": list(experiment.errors),
        "waitingFor": experiment.waiting_for,
    }


def metadata(experiment: experiment_pb2.Experiment, urls: list[str], pid: int) -> dict[str, Any]:
    """Return an experiment's JSON for the list of experiments: id, name, port, state, times.

    Args:
        experiment: the experiment.
        urls: addresses of its page; empty without a listener.
        pid: id of the process that serves it.
    """
    config = experiment.config
    platforms = [service.platform for service in config.training_services]
    return {
        "id": experiment.id,
        "name": experiment.config.experiment_name,
        "port": experiment.port or None,
        "status": experiment_state_name(experiment.state),
        "platform": "callers" if config.HasField("callers") else ",".join(platforms),
        "startTime": _ms_or(experiment, "started_at", None),
        "endTime": _ms_or(experiment, "ended_at", NOT_ENDED),
        "tag": [f"{key}={text}" if text else key for key, text in experiment.config.tags.items()],
        "pid": pid,
        "webuiUrl": urls,
        "logDir": experiment.directory,
        "prefixUrl": experiment.url_prefix or None,
        "trialCounts": dict(experiment.trial_counts),
        "bestValue": experiment.best_value if experiment.HasField("best_value") else None,
        "remarks": remarks_record(experiment.remarks),
    }


def exported(
    message: experiment_service_pb2.ExportedTrial, *, intermediate: bool
) -> dict[str, Any]:
    """Return an exported trial as `{"parameter", "value", "id"}`, which `import-data` accepts."""
    out = {
        "parameter": value_of(message.parameters),
        "value": value_of(message.value),
        "id": message.trial_id,
    }
    if intermediate:
        out["intermediate"] = [value_of(value) for value in message.intermediates]
    return out


def _ms_or(
    experiment: experiment_pb2.Experiment, field: str, otherwise: str | None
) -> int | str | None:
    if not experiment.HasField(field):  # type: ignore[arg-type] # a name of this module
        return otherwise
    return to_ms(getattr(experiment, field))
