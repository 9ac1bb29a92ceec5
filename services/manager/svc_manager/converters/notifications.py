"""Converter of INBOX messages: reports of agents, and messages of algorithms."""

from dataclasses import replace
from typing import Final, cast

from google.protobuf.message import DecodeError

from nni_proto.experiment.v1 import inbox_pb2
from svc_common import subjects
from svc_common.errors import PermissionDeniedError
from svc_common.messaging.decoding import decode_counted
from svc_common.rpc.message_parts import PARTS_LIMIT
from svc_manager.converters.event_codec import event_from
from svc_manager.converters.reasons import TEXT_LIMIT
from svc_manager.converters.reports import report_from
from svc_manager.domain import events, inputs

REPORTS_LIMIT: Final = 50_000
"""Most reports in a message. An agent sends batches of 1 MB, which have at most 35,000."""


def notifications_from(payload: bytes, source: str | None = None) -> list[inputs.Notification]:
    """Decode an INBOX message to notifications (unknown kind: none); raise unless its sender may.

    Args:
        payload: the message.
        source: name of the sender, which the bus verifies. None: unknown and not checked.

    Raises:
        google.protobuf.message.DecodeError: it is not an INBOX message, or has too many parts or
            reports.
        PermissionDeniedError: the sender may not send this: an agent reports for itself only, and
            only the algorithm's host answers for the algorithm.
    """
    return notifications_of(inbox_message_from(payload), source)


def inbox_message_from(payload: bytes) -> inbox_pb2.InboxMessage:
    """Decode an INBOX message; raise DecodeError if it is none, or has too many parts or reports.

    A batch of reports with inline values has at most 530,000 parts: 1 MB of lists of small numbers,
    which take 4 bytes and are 2 parts each. Larger values are stored as blobs.

    Raises:
        google.protobuf.message.DecodeError: it is not an INBOX message, has more than
            `PARTS_LIMIT` parts, or more than `REPORTS_LIMIT` reports.
    """
    message = decode_counted(inbox_pb2.InboxMessage, payload, PARTS_LIMIT)
    count = len(message.runner_reports.reports)
    if count > REPORTS_LIMIT:
        raise DecodeError(
            f"a message must have at most {REPORTS_LIMIT:,} reports, got {count:,}; send more "
            "messages"
        )
    return message


def notifications_of(
    message: inbox_pb2.InboxMessage, source: str | None = None
) -> list[inputs.Notification]:
    """Convert a decoded INBOX message to notifications; raise unless its sender may send it.

    Raises:
        PermissionDeniedError: the sender may not send this.
    """
    kind = message.WhichOneof("kind")
    if kind is None:
        return []
    reports = message.runner_reports if kind == "runner_reports" else None
    runner_id = reports.runner_id if reports is not None else ""
    if source is not None and not _may_send(source, runner_id):
        raise PermissionDeniedError(
            f"{source} may not send {kind} of {runner_id or 'an algorithm'}"
        )
    if reports is None:
        return [_notification_of(message, kind)]
    return [
        report for item in reports.reports if (report := report_from(runner_id, item)) is not None
    ]


def _may_send(source: str, runner_id: str) -> bool:
    if runner_id:
        return source == runner_id
    return source in subjects.ALGORITHM_SOURCES


def _notification_of(message: inbox_pb2.InboxMessage, kind: str) -> inputs.Notification:
    match kind:
        case "stop_advice":
            advice = message.stop_advice
            return inputs.StopAdvice(advice.trial_id, advice.reason[:TEXT_LIMIT])
        case "algorithm_gave_up":
            gave_up = message.algorithm_gave_up
            return inputs.AlgorithmGaveUp(gave_up.generation, gave_up.reason[-TEXT_LIMIT:])
        case _:
            notification = event_from(message)
    if isinstance(notification, events.AlgorithmFailed):
        return replace(
            notification,
            call=notification.call[:TEXT_LIMIT],
            traceback=notification.traceback[-TEXT_LIMIT:],
        )
    if isinstance(notification, events.AlgorithmWaits):
        return replace(notification, reason=notification.reason[:TEXT_LIMIT])
    return cast("inputs.Notification", notification)
