import pytest
from google.protobuf.message import DecodeError

from nni_proto.experiment.v1 import event_pb2, inbox_pb2
from nni_proto.trial.v1 import report_pb2
from svc_common.errors import PermissionDeniedError
from svc_manager.converters.notifications import notifications_from
from svc_manager.converters.reasons import TEXT_LIMIT
from svc_manager.domain import events, inputs


def notifications(**kind: object) -> list[inputs.Notification]:
    return notifications_from(inbox_pb2.InboxMessage(**kind).SerializeToString())  # type: ignore[arg-type] # any kind


def test_the_end_of_a_long_traceback_is_kept() -> None:
    failed = event_pb2.AlgorithmFailed(call="generate", traceback="x" * TEXT_LIMIT + "KeyError")

    (notification,) = notifications(algorithm_failed=failed)

    assert isinstance(notification, events.AlgorithmFailed)
    assert len(notification.traceback) == TEXT_LIMIT
    assert notification.traceback.endswith("KeyError")


def test_the_beginning_of_a_long_delay_is_kept() -> None:
    waits = event_pb2.AlgorithmWaits(generation=1, reason="no room" + "x" * TEXT_LIMIT)

    (notification,) = notifications(algorithm_waits=waits)

    assert isinstance(notification, events.AlgorithmWaits)
    assert len(notification.reason) == TEXT_LIMIT
    assert notification.reason.startswith("no room")


def test_every_kind_of_message_is_understood() -> None:
    kinds = {field.name for field in inbox_pb2.InboxMessage.DESCRIPTOR.oneofs[0].fields}

    for kind in kinds - {"runner_reports"}:
        message = inbox_pb2.InboxMessage()
        getattr(message, kind).SetInParent()
        assert len(notifications_from(message.SerializeToString())) == 1


def test_what_is_no_message_is_refused() -> None:
    with pytest.raises(DecodeError):
        notifications_from(b"\xff\xff")


@pytest.mark.parametrize(("source", "understood"), [("r1", True), ("r2", False), ("nas", False)])
def test_an_agent_speaks_for_itself_only(source: str, understood: bool) -> None:
    reports = report_pb2.RunnerReports(runner_id="r1")
    reports.reports.add(trial_id="abcde", attempt=1, claim_id="c").started.SetInParent()
    payload = inbox_pb2.InboxMessage(runner_reports=reports).SerializeToString()

    if understood:
        assert len(notifications_from(payload, source)) == 1
    else:
        with pytest.raises(PermissionDeniedError, match="of r1"):
            notifications_from(payload, source)


def test_an_agent_does_not_speak_for_an_algorithm() -> None:
    message = inbox_pb2.InboxMessage()
    message.algorithm_gave_up.reason = "forged"
    payload = message.SerializeToString()

    assert len(notifications_from(payload, "dispatcher")) == 1
    with pytest.raises(PermissionDeniedError, match="algorithm"):
        notifications_from(payload, "r1")
