"""Converters of INBOX messages: reports of agents, answers of algorithms."""

from collections.abc import Callable
from typing import Any, Final

from nni_proto.experiment.v1 import event_pb2, inbox_pb2
from nni_proto.trial.v1 import report_pb2
from svc_common import subjects
from svc_common.errors import PermissionDeniedError
from svc_manager.converters.scalars import metric_from, set_ms, to_ms, write_metric
from svc_manager.domain import events, inputs
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


def notifications_from(payload: bytes, source: str | None = None) -> list[inputs.Notification]:
    """Return the notifications of one INBOX message; empty for an unknown kind.

    Args:
        payload: the message.
        source: name of the sender, which the bus verifies. None: unknown and not checked.

    Raises:
        google.protobuf.message.DecodeError: it is not an INBOX message.
        PermissionDeniedError: the sender may not send this: an agent reports for itself only, and
            only the algorithm's host answers for the algorithm.
    """
    message = inbox_pb2.InboxMessage()
    message.ParseFromString(payload)
    kind = message.WhichOneof("kind")
    if kind is None:
        return []
    runner_id = message.runner_reports.runner_id if kind == "runner_reports" else ""
    if source is not None and not _may_send(source, runner_id):
        raise PermissionDeniedError(
            f"{source} may not send {kind} of {runner_id or 'an algorithm'}"
        )
    if kind == "runner_reports":
        reports = message.runner_reports
        return [
            report
            for item in reports.reports
            if (report := report_from(reports.runner_id, item)) is not None
        ]
    return [_NOTIFICATIONS[kind](getattr(message, kind))]


def _may_send(source: str, runner_id: str) -> bool:
    if runner_id:
        return source == runner_id
    return source in subjects.ALGORITHM_SOURCES


def report_from(runner_id: str, message: report_pb2.TrialReport) -> Report | None:
    """Return one report; None: its kind is unknown."""
    kind = message.WhichOneof("kind")
    if kind is None:
        return None
    body: ReportBody = _BODIES[kind](getattr(message, kind))
    return Report(
        runner_id, message.trial_id, message.attempt, message.sequence, message.claim_id, body
    )


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


# `Any`: each function takes the message of its key.
_BODIES: dict[str, Callable[[Any], ReportBody]] = {
    "started": _started,
    "metric": metric_from,
    "exited": _exited,
    "lost": lambda message: Lost(message.reason[:TEXT_LIMIT]),
    "waits": lambda message: Waits(message.reason[:TEXT_LIMIT]),
}


def algorithm_started_from(message: event_pb2.AlgorithmStarted) -> events.AlgorithmStarted:
    """Return the event of a message."""
    return events.AlgorithmStarted(
        message.generation, message.lookahead, message.assesses, dict(message.provenance)
    )


def parameters_generated_from(message: event_pb2.ParametersGenerated) -> events.ParametersGenerated:
    """Return the event of a message."""
    return events.ParametersGenerated(
        message.request_id,
        tuple(
            Parameters(
                item.parameter_id,
                item.parameters.SerializeToString(),
                item.provenance.SerializeToString(),
            )
            for item in message.parameters
        ),
        message.exhausted,
        message.deferred,
        (message.based_on.sequence, message.based_on.index),
        tuple(message.released_checkpoints),
    )


def algorithm_failed_from(message: event_pb2.AlgorithmFailed) -> events.AlgorithmFailed:
    """Return the event of a message."""
    return events.AlgorithmFailed(
        message.call[:TEXT_LIMIT],
        message.traceback[-TEXT_LIMIT:],
        (message.position.sequence, message.position.index),
        message.skipped,
    )


def algorithm_diverged_from(message: event_pb2.AlgorithmDiverged) -> events.AlgorithmDiverged:
    """Return the event of a message."""
    return events.AlgorithmDiverged(
        message.parameter_id,
        message.recorded.SerializeToString(),
        message.replayed.SerializeToString(),
    )


_NOTIFICATIONS: dict[str, Callable[[Any], inputs.Notification]] = {
    "algorithm_started": algorithm_started_from,
    "parameters_generated": parameters_generated_from,
    "algorithm_failed": algorithm_failed_from,
    "algorithm_diverged": algorithm_diverged_from,
    "stop_advice": lambda message: inputs.StopAdvice(message.trial_id, message.reason[:TEXT_LIMIT]),
    "algorithm_gave_up": lambda message: inputs.AlgorithmGaveUp(
        message.generation, message.reason[-TEXT_LIMIT:]
    ),
}
