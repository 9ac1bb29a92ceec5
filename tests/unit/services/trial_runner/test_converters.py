import math
from datetime import UTC, datetime, timedelta

import pytest

from nni_proto.common.v1 import metric_pb2
from nni_proto.experiment.v1 import inbox_pb2
from nni_proto.runner.v1 import task_pb2
from nni_proto.trial.v1 import cause_pb2, report_pb2
from nni_wire.values import from_value, write_value
from svc_common.experiment_events.causes import (
    GpuUser,
    LossCause,
    LossReason,
    WaitCause,
    WaitReason,
)
from svc_trial_runner.converters import (
    read_entry,
    report_entry,
    reports_message,
    work_from_payload,
)
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
    SavedCheckpoint,
)
from svc_trial_runner.domain.tasks import BlobKey, GpuRules, TrialCheckpoint

KEY = AttemptKey("exp", "aaaaa", 2)
NOW = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


def full_task() -> task_pb2.TrialTask:
    task = task_pb2.TrialTask(
        experiment_id="exp", trial_id="aaaaa", attempt=2, sequence_id=4, parameter_id=5
    )
    write_value(task.parameters, {"x": [1, 2.5, None]})
    task.parameter_source = "customized"
    task.spec.command = "python t.py"
    task.spec.code_directory = "/code"
    task.spec.experiment_directory = "/root/exp"
    task.spec.environment_file = "/root/exp/environment.json"
    task.spec.gpu_number = 0
    task.spec.time_limit.FromTimedelta(timedelta(seconds=1.5))
    task.spec.grace.FromTimedelta(timedelta(seconds=2))
    task.spec.platform = "local"
    write_value(task.spec.platform_options, {"useActiveGpu": True})
    task.spec.output_limit_bytes = 77
    task.spec.environment["A"] = "b"
    return task


def round_trip(report: AttemptReport, sequence: int = 3) -> report_pb2.TrialReport:
    return read_entry(report_entry(KEY, "claim", sequence, report))


def test_task_becomes_work() -> None:
    work = work_from_payload(full_task().SerializeToString())

    assert work.key == KEY
    assert (work.sequence_id, work.parameter_id) == (4, 5)
    assert work.parameters == {"x": [1, 2.5, None]}
    assert work.parameter_source == "customized"
    assert work.spec.command == "python t.py"
    assert work.spec.code_directory == "/code"
    assert work.spec.experiment_directory == "/root/exp"
    assert work.spec.environment_file == "/root/exp/environment.json"
    assert work.spec.gpus == GpuRules(0, None, 1, True)
    assert work.spec.time_limit_s == 1.5
    assert work.spec.grace_s == 2
    assert work.spec.output_limit_bytes == 77
    assert work.spec.environment == {"A": "b"}


def test_missing_fields_of_a_task_have_their_defaults() -> None:
    task = task_pb2.TrialTask(experiment_id="exp", trial_id="aaaaa", attempt=1)

    spec = work_from_payload(task.SerializeToString()).spec

    assert spec.gpus.count is None
    assert spec.time_limit_s is None
    assert spec.grace_s == 5
    assert spec.platform == "local"
    assert spec.code_archive is None
    assert (spec.checkpoints_travel, spec.outputs_travel) == (False, False)


def test_large_parameters_and_archives_are_references() -> None:
    task = full_task()
    task.parameters.blob_value.sha256 = "ab"
    task.parameters.blob_value.size_bytes = 9
    task.spec.code_archive.sha256 = "cd"

    work = work_from_payload(task.SerializeToString())

    assert work.parameters == BlobKey("ab", 9)
    assert work.spec.code_archive == BlobKey("cd", 0)
    assert work.spec.code_directory == ""


def test_equal_specs_have_equal_digests() -> None:
    first, second, other = full_task(), full_task(), full_task()
    second.trial_id = "bbbbb"
    other.spec.command = "true"

    digests = [
        work_from_payload(task.SerializeToString()).spec_digest for task in (first, second, other)
    ]

    assert digests[0] == digests[1] != digests[2]


@pytest.mark.parametrize("payload", [b"\xff\xff", b"", full_task().SerializeToString()[:9]])
def test_invalid_task_is_refused(payload: bytes) -> None:
    with pytest.raises(ValueError, match="ask"):
        work_from_payload(payload)


@pytest.mark.parametrize(
    ("experiment_id", "trial_id", "attempt"),
    [("", "aaaaa", 1), ("exp", "", 1), ("exp", "aaaaa", 0)],
)
def test_task_without_one_part_of_its_key_is_refused(
    experiment_id: str, trial_id: str, attempt: int
) -> None:
    task = task_pb2.TrialTask(experiment_id=experiment_id, trial_id=trial_id, attempt=attempt)

    with pytest.raises(ValueError, match="a task needs experiment_id, trial_id and attempt >= 1"):
        work_from_payload(task.SerializeToString())


def test_report_names_attempt_claim_and_number() -> None:
    report = round_trip(AttemptWaits(WaitReason(WaitCause.BLOB, object="no GPU")))

    assert (report.trial_id, report.attempt) == ("aaaaa", 2)
    assert (report.claim_id, report.sequence) == ("claim", 3)
    assert report.waits.reason == "waiting for no GPU"


def test_loss_has_its_cause_and_its_text_for_older_managers() -> None:
    expired = round_trip(AttemptLost(LossReason(LossCause.CLAIM_EXPIRED, silence_ms=60_000))).lost
    failed = round_trip(AttemptLost(LossReason(LossCause.AGENT_FAILED, detail="disk full"))).lost

    assert expired.loss.cause == cause_pb2.LOSS_CAUSE_CLAIM_EXPIRED
    assert expired.loss.silence.ToMilliseconds() == 60_000
    assert expired.reason == "its task could not be renewed for 60 s"
    assert failed.loss.cause == cause_pb2.LOSS_CAUSE_AGENT_FAILED
    assert failed.loss.detail == failed.reason == "disk full"
    assert not failed.loss.HasField("silence")


def test_wait_for_gpus_names_their_users() -> None:
    users = (GpuUser(0, ("one", "two")), GpuUser(1, experiment_id="e"), GpuUser(2, process="p"))

    waits = round_trip(AttemptWaits(WaitReason(WaitCause.GPU_IN_USE, gpu_count=3, users=users)))

    wait = waits.waits.wait
    assert (wait.cause, wait.gpu_count) == (cause_pb2.WAIT_CAUSE_GPU_IN_USE, 3)
    assert [
        GpuUser(user.index, tuple(user.trial_ids), user.experiment_id, user.process)
        for user in wait.users
    ] == list(users)
    assert waits.waits.reason.startswith("waiting for 3 GPUs: 0 in use by trial one and two")


def test_wait_for_a_missing_gpu_or_a_blob_has_its_facts() -> None:
    missing = WaitReason(WaitCause.GPU_MISSING, gpu_count=2, gpu_available=1, gpu_restricted=True)
    blob = WaitReason(WaitCause.BLOB, object="its code", detail="no room", failure_count=3)

    gpu = round_trip(AttemptWaits(missing)).waits.wait
    code = round_trip(AttemptWaits(blob)).waits.wait

    assert (gpu.cause, gpu.gpu_count, gpu.gpu_available, gpu.gpu_restricted) == (
        cause_pb2.WAIT_CAUSE_GPU_MISSING,
        2,
        1,
        True,
    )
    assert (code.cause, code.object, code.detail, code.failure_count) == (
        cause_pb2.WAIT_CAUSE_BLOB,
        "its code",
        "no room",
        3,
    )


def test_start_becomes_a_report() -> None:
    started = round_trip(ProcessStarted(NOW, 77, (0, 2), True)).started

    assert started.started_at.ToDatetime(UTC) == NOW
    assert (started.pid, list(started.gpu_indices), started.warm) == (77, [0, 2], True)


@pytest.mark.parametrize("value", [1, 0.5, None, "text", {"default": 1, "b": [True]}, -(2**70)])
def test_metric_keeps_its_value(value: object) -> None:
    metric = round_trip(MetricReported(True, 0, value, NOW)).metric

    assert metric.type == metric_pb2.METRIC_TYPE_FINAL
    assert from_value(metric.value) == value
    assert metric.HasField("value")
    assert metric.reported_at.ToDatetime(UTC) == NOW


def test_metric_that_is_not_a_number_survives() -> None:
    metric = round_trip(MetricReported(False, 7, math.nan, NOW)).metric

    assert metric.type == metric_pb2.METRIC_TYPE_PERIODICAL
    assert metric.sequence == 7
    assert math.isnan(from_value(metric.value))


def test_large_metric_is_a_reference() -> None:
    metric = round_trip(MetricReported(False, 0, BlobKey("ab", 9), NOW)).metric

    assert metric.value.blob_value.sha256 == "ab"
    assert metric.value.blob_value.size_bytes == 9


def test_exit_code_zero_differs_from_a_signal() -> None:
    ended = round_trip(ProcessExited(NOW, ExitCause.ENDED, 0, 0, "")).exited
    killed = round_trip(ProcessExited(NOW, ExitCause.STOPPED, None, 9, "")).exited

    assert ended.HasField("exit_code")
    assert ended.cause == report_pb2.EXIT_CAUSE_ENDED
    assert ended.ended_at.ToDatetime(UTC) == NOW
    assert not ended.HasField("checkpoint")
    assert not killed.HasField("exit_code")
    assert killed.signal == 9
    assert killed.cause == report_pb2.EXIT_CAUSE_STOPPED


def test_end_names_the_checkpoint_that_was_saved() -> None:
    saved = SavedCheckpoint("/c/0/1", BlobKey("ab" * 32, 9))

    found = round_trip(ProcessExited(NOW, ExitCause.ENDED, 0, 0, "", saved)).exited.checkpoint

    assert found.directory == "/c/0/1"
    assert (found.archive.sha256, found.archive.size_bytes) == ("ab" * 32, 9)


@pytest.mark.parametrize("cause", list(ExitCause))
def test_every_cause_has_its_number(cause: ExitCause) -> None:
    exited = round_trip(ProcessExited(NOW, cause, 1, 0, "why")).exited

    assert report_pb2.ExitCause.Name(exited.cause) == f"EXIT_CAUSE_{cause.name}"
    assert exited.detail == "why"


def test_message_is_the_concatenation_of_its_reports() -> None:
    entries = [
        report_entry(
            KEY, "c", number, AttemptLost(LossReason(LossCause.AGENT_FAILED, detail="x" * 200))
        )
        for number in range(300)
    ]

    message = inbox_pb2.InboxMessage.FromString(reports_message("r", "b", entries))

    reports = message.runner_reports
    assert (reports.runner_id, reports.boot_id) == ("r", "b")
    assert [report.sequence for report in reports.reports] == list(range(300))


def test_report_of_any_length_is_read_again() -> None:
    details = ["x" * size for size in range(80, 140)]

    entries = [
        report_entry(KEY, "c", 0, AttemptLost(LossReason(LossCause.AGENT_FAILED, detail=detail)))
        for detail in details
    ]

    assert [read_entry(entry).lost.loss.detail for entry in entries] == details


@pytest.mark.parametrize("size", range(110, 130))
def test_message_of_any_length_is_read_again(size: int) -> None:
    message = inbox_pb2.InboxMessage.FromString(reports_message("r" * size, "b", []))

    assert message.runner_reports.runner_id == "r" * size


def test_invalid_duration_is_refused() -> None:
    task = full_task()
    task.spec.grace.seconds = 2**62

    with pytest.raises(ValueError, match="grace must be a duration"):
        work_from_payload(task.SerializeToString())


@pytest.mark.parametrize("archive", [None, BlobKey("ab" * 32, 9)])
def test_checkpoint_has_its_archive_if_it_was_stored(archive: BlobKey | None) -> None:
    report = round_trip(CheckpointSaved(TrialCheckpoint(-4, 2, 3, archive)))

    found = report.checkpoint_saved.checkpoint
    assert (found.step, found.attempt, found.number) == (-4, 2, 3)
    assert found.HasField("archive") == (archive is not None)
    stored = BlobKey("", 0) if archive is None else archive
    assert (found.archive.sha256, found.archive.size_bytes) == (stored.sha256, stored.size_bytes)


def test_task_names_the_checkpoint_that_the_trial_loads() -> None:
    task = full_task()
    before = work_from_payload(task.SerializeToString()).load_checkpoint
    task.load_checkpoint.sha256, task.load_checkpoint.size_bytes = "cd" * 32, 7

    work = work_from_payload(task.SerializeToString())

    assert before is None
    assert work.load_checkpoint == BlobKey("cd" * 32, 7)


def test_task_names_the_checkpoint_of_an_earlier_attempt() -> None:
    task = full_task()
    before = work_from_payload(task.SerializeToString()).resume_from
    task.resume_from.step, task.resume_from.attempt, task.resume_from.number = 40, 1, 3
    task.resume_from.archive.sha256, task.resume_from.archive.size_bytes = "ab" * 32, 9

    work = work_from_payload(task.SerializeToString())

    assert before is None
    assert work.resume_from == TrialCheckpoint(40, 1, 3, BlobKey("ab" * 32, 9))
