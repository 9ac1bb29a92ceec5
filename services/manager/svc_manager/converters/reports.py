"""Converters of agents' reports, checkpoints and suggestions."""

from typing import Final

from nni_proto.experiment.v1 import event_pb2
from nni_proto.trial.v1 import report_pb2
from svc_manager.converters.scalars import metric_from, set_ms, to_ms, write_metric
from svc_manager.domain.checkpoints import SavedCheckpoint
from svc_manager.domain.reports import (
    ExitCause,
    Exited,
    Lost,
    Report,
    ReportBody,
    Started,
    Waits,
)
from svc_manager.domain.values import Metric, Parameters

TEXT_LIMIT: Final = 64 * 1024
"""Maximum length of foreign texts in the log; of a traceback the end is kept."""

_CAUSES = {int(member): member for member in ExitCause}


def report_from(runner_id: str, message: report_pb2.TrialReport) -> Report | None:
    """Return one report; None: its kind is unknown."""
    body = _body_of(message)
    if body is None:
        return None
    return Report(
        runner_id, message.trial_id, message.attempt, message.sequence, message.claim_id, body
    )


def _body_of(message: report_pb2.TrialReport) -> ReportBody | None:
    match message.WhichOneof("kind"):
        case "started":
            return _started(message.started)
        case "metric":
            return metric_from(message.metric)
        case "exited":
            return _exited(message.exited)
        case "lost":
            return Lost(message.lost.reason[:TEXT_LIMIT])
        case "waits":
            return Waits(message.waits.reason[:TEXT_LIMIT])
        case _:
            return None


def write_report(message: report_pb2.TrialReport, report: Report) -> None:
    """Write a report into an empty message."""
    message.trial_id = report.trial_id
    message.attempt = report.attempt
    message.sequence = report.sequence
    message.claim_id = report.claim_id
    match report.body:
        case Started() as started:
            set_ms(message.started.started_at, started.started_at_ms)
            message.started.pid = started.pid
            message.started.gpu_indices.extend(started.gpu_indices)
            message.started.warm = started.warm
        case Metric() as metric:
            write_metric(message.metric, metric)
        case Exited() as exited:
            _write_exited(message.exited, exited)
        case Lost(reason):
            message.lost.reason = reason
            message.lost.SetInParent()
        case Waits(reason):
            message.waits.reason = reason
            message.waits.SetInParent()


def _write_exited(message: report_pb2.AttemptExited, exited: Exited) -> None:
    set_ms(message.ended_at, exited.ended_at_ms)
    message.cause = exited.cause.value  # type: ignore[assignment] # the numbers are the contract's
    if exited.exit_code is not None:
        message.exit_code = exited.exit_code
    message.signal = exited.signal
    message.detail = exited.detail
    if exited.checkpoint is not None:
        write_checkpoint(message.checkpoint, exited.checkpoint)


def write_checkpoint(message: report_pb2.SavedCheckpoint, checkpoint: SavedCheckpoint) -> None:
    """Write a checkpoint into an empty message."""
    message.directory = checkpoint.directory
    message.archive.sha256 = checkpoint.sha256
    message.archive.size_bytes = checkpoint.size_bytes


def checkpoint_from(message: report_pb2.SavedCheckpoint) -> SavedCheckpoint:
    """Return the checkpoint of a message."""
    return SavedCheckpoint(message.directory, message.archive.sha256, message.archive.size_bytes)


def _started(message: report_pb2.AttemptStarted) -> Started:
    return Started(to_ms(message.started_at), message.pid, tuple(message.gpu_indices), message.warm)


def _exited(message: report_pb2.AttemptExited) -> Exited:
    return Exited(
        to_ms(message.ended_at),
        _CAUSES.get(message.cause, ExitCause.UNSPECIFIED),
        message.exit_code if message.HasField("exit_code") else None,
        message.signal,
        message.detail[-TEXT_LIMIT:],
        checkpoint_from(message.checkpoint) if message.HasField("checkpoint") else None,
    )


def parameters_from(message: event_pb2.GeneratedParameters) -> Parameters:
    """Return one suggestion of a message."""
    return Parameters(
        message.parameter_id,
        message.parameters.SerializeToString(),
        message.provenance.SerializeToString(),
    )


def write_parameters(message: event_pb2.GeneratedParameters, parameters: Parameters) -> None:
    """Write a suggestion into an empty message."""
    message.parameter_id = parameters.parameter_id
    message.parameters.MergeFromString(parameters.parameters)
    message.provenance.MergeFromString(parameters.provenance)
