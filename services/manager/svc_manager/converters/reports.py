"""Converters of agents' reports, checkpoints and suggestions."""

import re
from typing import Final

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import event_pb2
from nni_proto.trial.v1 import report_pb2
from nni_wire.values import check_value
from svc_common.experiment_events.causes import LossReason, WaitReason
from svc_manager.converters.old_texts import old_loss_text, old_wait_text
from svc_manager.converters.reasons import (
    TEXT_LIMIT,
    loss_from,
    wait_from,
    write_loss,
    write_wait,
)
from svc_manager.converters.scalars import metric_from, set_ms, to_ms, write_metric
from svc_manager.domain.checkpoints import SavedCheckpoint, TrialCheckpoint
from svc_manager.domain.reports import (
    CheckpointSaved,
    ExitCause,
    Exited,
    Lost,
    Report,
    ReportBody,
    Started,
    Waits,
)
from svc_manager.domain.values import Metric, Parameters

_HASH: Final = re.compile(r"[0-9a-f]{64}")
_CHECKED_KINDS: Final = frozenset({"map_value", "list_value", "big_int_value"})
"""Kinds of values that may be malformed; plain numbers, by far the most, are not checked."""
_CAUSES = {int(member): member for member in ExitCause}


def report_from(runner_id: str, message: report_pb2.TrialReport) -> Report | None:
    """Convert an agent's proto report on a trial to the domain; None: unknown kind."""
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
            return metric_from(_readable(message.metric))
        case "exited":
            return _exited(message.exited)
        case "lost":
            return Lost(_loss(message.lost))
        case "waits":
            return Waits(_wait(message.waits))
        case "checkpoint_saved":
            return CheckpointSaved(trial_checkpoint_from(message.checkpoint_saved.checkpoint))
        case _:
            return None


def _readable(metric: metric_pb2.Metric) -> metric_pb2.Metric:
    """Clear a malformed value of a metric in place, as it would stop readers; return the metric.

    Whether a named blob exists is not checked: the store may be unreachable now, and the blob gone
    later. Readers of the log handle that.
    """
    value = metric.value
    kind = value.WhichOneof("kind")
    if kind == "blob_value":
        if not _HASH.fullmatch(value.blob_value.sha256):
            value.Clear()
    elif kind in _CHECKED_KINDS:
        try:
            check_value(value)
        except ValueError:
            value.Clear()
    return metric


def _loss(message: report_pb2.AttemptLost) -> LossReason:
    """Return the cause in a report of a lost attempt; parse the text of older agents."""
    if message.HasField("loss"):
        return loss_from(message.loss)
    return old_loss_text(message.reason[:TEXT_LIMIT])


def _wait(message: report_pb2.AttemptWaits) -> WaitReason:
    """Return the cause in a report of a waiting attempt; parse the text of older agents."""
    if message.HasField("wait"):
        return wait_from(message.wait)
    return old_wait_text(message.reason[:TEXT_LIMIT])


def write_report(message: report_pb2.TrialReport, report: Report) -> None:
    """Write a domain report of an agent on a trial into an empty proto message."""
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
        case Lost(loss):
            write_loss(message.lost.loss, loss)
        case Waits(wait):
            write_wait(message.waits.wait, wait)
        case CheckpointSaved(checkpoint):
            write_trial_checkpoint(message.checkpoint_saved.checkpoint, checkpoint)


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
    """Write a saved checkpoint's directory, hash and size into an empty proto message."""
    message.directory = checkpoint.directory
    message.archive.sha256 = checkpoint.sha256
    message.archive.size_bytes = checkpoint.size_bytes


def checkpoint_from(message: report_pb2.SavedCheckpoint) -> SavedCheckpoint:
    """Convert a proto saved checkpoint (directory, hash, size) to the domain value."""
    return SavedCheckpoint(message.directory, message.archive.sha256, message.archive.size_bytes)


def write_trial_checkpoint(
    message: report_pb2.TrialCheckpoint, checkpoint: TrialCheckpoint
) -> None:
    """Write a trial's checkpoint (step, attempt, number, archive) into an empty proto message."""
    message.step = checkpoint.step
    message.attempt = checkpoint.attempt
    message.number = checkpoint.number
    if checkpoint.sha256:
        message.archive.sha256 = checkpoint.sha256
        message.archive.size_bytes = checkpoint.size_bytes


def trial_checkpoint_from(message: report_pb2.TrialCheckpoint) -> TrialCheckpoint:
    """Convert a trial's proto checkpoint to the domain value; empty hash: it has no archive."""
    return TrialCheckpoint(
        message.step,
        message.attempt,
        message.number,
        message.archive.sha256,
        message.archive.size_bytes,
    )


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
    """Convert a proto message of generated parameters to the domain `Parameters`."""
    return Parameters(
        message.parameter_id,
        message.parameters.SerializeToString(),
        message.provenance.SerializeToString() if message.HasField("provenance") else b"",
    )


def write_parameters(message: event_pb2.GeneratedParameters, parameters: Parameters) -> None:
    """Write generated parameters (id, values, provenance) into an empty proto message."""
    message.parameter_id = parameters.parameter_id
    message.parameters.MergeFromString(parameters.parameters)
    if parameters.provenance:
        message.provenance.MergeFromString(parameters.provenance)
