"""Conversion between protobuf messages and values of the agent.

Reports are kept serialised: each is converted once, and a message to the manager is their
concatenation, which is how protobuf encodes a repeated field.
"""

import hashlib
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from google.protobuf import timestamp_pb2
from google.protobuf.duration_pb2 import Duration

from nni_proto.common.v1 import metric_pb2, value_pb2
from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import cause_pb2, report_pb2
from nni_wire.values import blob_of, from_value, write_value
from svc_common.experiment_events.cause_text import loss_text, wait_text
from svc_common.experiment_events.causes import LossReason, WaitReason
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.reports import (
    AttemptLost,
    AttemptReport,
    AttemptWaits,
    CheckpointSaved,
    ExitCause,
    MetricReported,
    ProcessExited,
    ProcessStarted,
)
from svc_trial_runner.domain.tasks import (
    BlobKey,
    TrialCheckpoint,
    TrialSpec,
    TrialWork,
    parse_gpu_rules,
)

_SPECS_KEPT: Final = 64
_REPORTS_TAG: Final = bytes([report_pb2.RunnerReports.REPORTS_FIELD_NUMBER << 3 | 2])
_INBOX_TAG: Final = bytes([1 << 3 | 2])  # InboxMessage.runner_reports

_CAUSES: Final = {
    ExitCause.ENDED: report_pb2.EXIT_CAUSE_ENDED,
    ExitCause.STOPPED: report_pb2.EXIT_CAUSE_STOPPED,
    ExitCause.TIME_LIMIT: report_pb2.EXIT_CAUSE_TIME_LIMIT,
    ExitCause.NOT_STARTED: report_pb2.EXIT_CAUSE_NOT_STARTED,
}


def work_from_payload(payload: bytes) -> TrialWork:
    """Decode a `TrialTask` message to the work of an attempt; raise ValueError if invalid.

    Raises:
        ValueError: the payload is no task, or a field breaks a rule.
    """
    try:
        task = task_pb2.TrialTask.FromString(payload)
    except Exception as error:
        raise ValueError(f"not a TrialTask: {error}") from error
    if not task.experiment_id or not task.trial_id or task.attempt < 1:
        raise ValueError("a task needs experiment_id, trial_id and attempt >= 1")
    spec_bytes = task.spec.SerializeToString(deterministic=True)
    digest = hashlib.blake2b(spec_bytes, digest_size=16).digest()
    return TrialWork(
        key=AttemptKey(task.experiment_id, task.trial_id, task.attempt),
        sequence_id=task.sequence_id,
        parameter_id=task.parameter_id,
        parameters=_json_or_blob(task.parameters),
        parameter_source=task.parameter_source,
        spec=_spec(spec_bytes),
        spec_digest=digest,
        load_checkpoint=(
            BlobKey(task.load_checkpoint.sha256, task.load_checkpoint.size_bytes)
            if task.HasField("load_checkpoint")
            else None
        ),
        resume_from=_checkpoint(task.resume_from) if task.HasField("resume_from") else None,
        log_sequence=task.log_sequence,
        traceparent=task.traceparent,
    )


def _json_or_blob(value: value_pb2.Value) -> Any:  # noqa: ANN401 - any JSON value
    blob = blob_of(value)
    return from_value(value) if blob is None else BlobKey(blob.sha256, blob.size_bytes)


@lru_cache(maxsize=_SPECS_KEPT)
def _spec(spec_bytes: bytes) -> TrialSpec:
    spec = task_pb2.TrialSpec.FromString(spec_bytes)
    archive = None
    if spec.WhichOneof("code") == "code_archive":
        archive = BlobKey(spec.code_archive.sha256, spec.code_archive.size_bytes)
    made = TrialSpec(
        command=spec.command,
        code_directory=spec.code_directory,
        code_archive=archive,
        experiment_directory=spec.experiment_directory,
        environment_file=spec.environment_file,
        gpus=parse_gpu_rules(
            spec.gpu_number if spec.HasField("gpu_number") else None,
            from_value(spec.platform_options),
        ),
        platform=spec.platform or "local",
        output_limit_bytes=spec.output_limit_bytes,
        environment=dict(spec.environment),
        checkpoints_travel=spec.checkpoints_travel,
        outputs_travel=spec.outputs_travel,
    )
    if spec.HasField("time_limit"):
        made = replace(made, time_limit_s=_seconds(spec.time_limit, "time_limit"))
    if spec.HasField("grace"):
        made = replace(made, grace_s=_seconds(spec.grace, "grace"))
    return made


def _seconds(duration: Duration, field: str) -> float:
    try:
        return duration.ToTimedelta().total_seconds()
    except OverflowError:
        raise ValueError(f"{field} must be a duration, got {duration.seconds} s") from None


def report_entry(key: AttemptKey, claim_id: str, sequence: int, report: AttemptReport) -> bytes:
    """Encode a report as a tagged `TrialReport` field of `RunnerReports`, to be concatenated."""
    message = report_pb2.TrialReport(
        trial_id=key.trial_id, attempt=key.attempt, sequence=sequence, claim_id=claim_id
    )
    match report:
        case MetricReported():
            _write_metric(message.metric, report)
        case ProcessStarted(started_at, pid, gpu_indices, warm):
            started = message.started
            _write_time(started.started_at, started_at)
            started.pid = pid
            started.gpu_indices.extend(gpu_indices)
            started.warm = warm
        case ProcessExited():
            _write_exited(message.exited, report)
        case AttemptLost(loss):
            message.lost.reason = loss_text(loss)
            _write_loss(message.lost.loss, loss)
        case CheckpointSaved(checkpoint):
            _write_checkpoint(message.checkpoint_saved.checkpoint, checkpoint)
        case AttemptWaits(wait):
            message.waits.reason = wait_text(wait)
            write_wait(message.waits.wait, wait)
    data = message.SerializeToString()
    return _REPORTS_TAG + _varint(len(data)) + data


def _write_checkpoint(message: report_pb2.TrialCheckpoint, checkpoint: TrialCheckpoint) -> None:
    message.step = checkpoint.step
    message.attempt = checkpoint.attempt
    message.number = checkpoint.number
    if checkpoint.archive is not None:
        message.archive.sha256 = checkpoint.archive.sha256
        message.archive.size_bytes = checkpoint.archive.size_bytes


def _checkpoint(message: report_pb2.TrialCheckpoint) -> TrialCheckpoint:
    archive = BlobKey(message.archive.sha256, message.archive.size_bytes)
    return TrialCheckpoint(message.step, message.attempt, message.number, archive)


def _write_loss(message: cause_pb2.LossReason, loss: LossReason) -> None:
    """Write an observed loss (cause, silence, detail) into an empty proto message."""
    message.cause = loss.cause.value  # type: ignore[assignment] # the contract's numbers
    if loss.silence_ms is not None:
        message.silence.FromMilliseconds(loss.silence_ms)
    message.detail = loss.detail


def write_wait(message: cause_pb2.WaitReason, wait: WaitReason) -> None:
    """Write why a trial waits (GPUs and users, or blob) into an empty proto message."""
    message.cause = wait.cause.value  # type: ignore[assignment] # the contract's numbers
    message.gpu_count = wait.gpu_count
    message.gpu_available = wait.gpu_available
    message.gpu_restricted = wait.gpu_restricted
    for user in wait.users:
        message.users.add(
            index=user.index,
            trial_ids=user.trial_ids,
            experiment_id=user.experiment_id,
            process=user.process,
        )
    message.object = wait.object
    message.detail = wait.detail
    message.failure_count = wait.failure_count


def _write_metric(message: metric_pb2.Metric, metric: MetricReported) -> None:
    message.type = (
        metric_pb2.METRIC_TYPE_FINAL if metric.final else metric_pb2.METRIC_TYPE_PERIODICAL
    )
    message.sequence = metric.sequence
    _write_time(message.reported_at, metric.reported_at)
    if isinstance(metric.value, BlobKey):
        blob = message.value.blob_value
        blob.sha256, blob.size_bytes = metric.value.sha256, metric.value.size_bytes
    else:
        message.value.SetInParent()
        write_value(message.value, metric.value)


def _write_exited(message: report_pb2.AttemptExited, exited: ProcessExited) -> None:
    _write_time(message.ended_at, exited.ended_at)
    message.cause = _CAUSES[exited.cause]
    if exited.exit_code is not None:
        message.exit_code = exited.exit_code
    message.signal = exited.signal
    message.detail = exited.detail
    if exited.checkpoint is not None:
        message.checkpoint.directory = exited.checkpoint.directory
        message.checkpoint.archive.sha256 = exited.checkpoint.archive.sha256
        message.checkpoint.archive.size_bytes = exited.checkpoint.archive.size_bytes


def _write_time(message: timestamp_pb2.Timestamp, moment: datetime) -> None:
    seconds = moment.timestamp()
    message.seconds = int(seconds // 1)
    message.nanos = moment.microsecond * 1000


def reports_message(runner_id: str, boot_id: str, entries: Iterable[bytes]) -> bytes:
    """Concatenate encoded reports to one INBOX message of this agent."""
    header = report_pb2.RunnerReports(runner_id=runner_id, boot_id=boot_id).SerializeToString()
    body = b"".join((header, *entries))
    return _INBOX_TAG + _varint(len(body)) + body


def read_entry(entry: bytes) -> report_pb2.TrialReport:
    """Parse a report made by `report_entry`."""
    (report,) = report_pb2.RunnerReports.FromString(entry).reports
    return report


def _varint(number: int) -> bytes:
    data = bytearray()
    while number > 0x7F:  # noqa: PLR2004 - seven bits a byte
        data.append(number & 0x7F | 0x80)
        number >>= 7
    data.append(number)
    return bytes(data)
