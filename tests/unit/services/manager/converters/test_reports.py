import pytest

from nni_proto.common.v1 import value_pb2
from nni_proto.experiment.v1 import inbox_pb2
from nni_proto.trial.v1 import cause_pb2, report_pb2
from nni_wire.values import to_value
from svc_common.experiment_events.causes import LossCause, LossReason, WaitCause, WaitReason
from svc_manager.converters.notifications import notifications_from
from svc_manager.domain import inputs
from svc_manager.domain.reports import ExitCause, Exited, Lost, Report, Waits
from svc_manager.domain.values import Metric


def notifications(**kind: object) -> list[inputs.Notification]:
    return notifications_from(inbox_pb2.InboxMessage(**kind).SerializeToString())  # type: ignore[arg-type] # any kind


def test_reports_of_an_agent_come_in_their_order() -> None:
    reports = report_pb2.RunnerReports(runner_id="r1")
    for sequence in range(3):
        reports.reports.add(
            trial_id="abcde", attempt=1, sequence=sequence, claim_id="c"
        ).lost.reason = "x"

    found = notifications(runner_reports=reports)

    assert [
        notification.sequence for notification in found if isinstance(notification, Report)
    ] == [0, 1, 2]


def test_an_end_by_a_signal_has_no_exit_code() -> None:
    reports = report_pb2.RunnerReports(runner_id="r1")
    exited = reports.reports.add(trial_id="abcde", attempt=1, claim_id="c").exited
    exited.cause = report_pb2.EXIT_CAUSE_STOPPED
    exited.signal = 15

    (notification,) = notifications(runner_reports=reports)

    assert isinstance(notification, Report)
    assert notification.body == Exited(0, ExitCause.STOPPED, None, 15, "")


def test_a_report_of_a_newer_version_is_passed_over() -> None:
    reports = report_pb2.RunnerReports(runner_id="r1")
    reports.reports.add(trial_id="abcde", attempt=1, claim_id="c")

    assert notifications(runner_reports=reports) == []
    assert notifications_from(b"") == []


def test_causes_of_an_agent_come_as_values() -> None:
    reports = report_pb2.RunnerReports(runner_id="r1")
    lost = reports.reports.add(trial_id="abcde", attempt=1, claim_id="c").lost
    lost.reason = "old text"
    lost.loss.cause = cause_pb2.LOSS_CAUSE_AGENT_STOPPED
    waits = reports.reports.add(trial_id="abcde", attempt=1, claim_id="c").waits
    waits.reason = "old text"
    waits.wait.cause = cause_pb2.WAIT_CAUSE_GPU_IN_USE
    waits.wait.gpu_count = 2

    found = notifications(runner_reports=reports)

    assert [one.body for one in found if isinstance(one, Report)] == [
        Lost(LossReason(LossCause.AGENT_STOPPED)),
        Waits(WaitReason(WaitCause.GPU_IN_USE, gpu_count=2)),
    ]


def test_texts_of_an_older_agent_become_causes() -> None:
    reports = report_pb2.RunnerReports(runner_id="r1")
    lost = reports.reports.add(trial_id="abcde", attempt=1, claim_id="c").lost
    lost.reason = "its agent was stopped"
    waits = reports.reports.add(trial_id="abcde", attempt=1, claim_id="c").waits
    waits.reason = "waiting for 2 GPUs"

    found = notifications(runner_reports=reports)

    assert [one.body for one in found if isinstance(one, Report)] == [
        Lost(LossReason(LossCause.AGENT_STOPPED)),
        Waits(WaitReason(WaitCause.GPU_IN_USE, gpu_count=2)),
    ]


def metric_of(value: value_pb2.Value) -> Metric:
    """Return the metric that the manager reads in a report with this value."""
    reports = report_pb2.RunnerReports(runner_id="r1")
    reports.reports.add(trial_id="abcde", attempt=1, claim_id="c").metric.value.CopyFrom(value)
    (notification,) = notifications(runner_reports=reports)
    assert isinstance(notification, Report)
    assert isinstance(notification.body, Metric)
    return notification.body


def stored(sha256: str) -> value_pb2.Value:
    return value_pb2.Value(blob_value=value_pb2.BlobRef(sha256=sha256))


@pytest.mark.parametrize(
    "value",
    [
        stored(""),
        stored("../" * 8),
        stored("A" * 64),
        value_pb2.Value(big_int_value="1e5"),
        value_pb2.Value(list_value=value_pb2.ListValue(items=[stored("0" * 64)])),
    ],
    ids=["no hash", "path", "capitals", "no integer", "blob inside a value"],
)
def test_malformed_metric_value_does_not_reach_the_log(value: value_pb2.Value) -> None:
    metric = metric_of(value)

    assert (metric.value, metric.numbers, metric.large) == (b"", None, False)


@pytest.mark.parametrize(
    "value",
    [
        to_value({"default": 0.5, "text": "x"}),
        to_value([1, 2**70]),
        to_value(None),
        stored("0" * 64),
    ],
    ids=["map", "list", "null", "blob"],
)
def test_well_formed_metric_value_reaches_the_log_as_it_is(value: value_pb2.Value) -> None:
    assert metric_of(value).value == value.SerializeToString()
