"""Reports of agents, and all else that comes through the INBOX."""

from collections.abc import Callable
from typing import Any, Final

from nni_proto.experiment.v1 import event_pb2, inbox_pb2
from nni_proto.trial.v1 import report_pb2
from svc_manager.converters.scalars import metric_from, set_ms, to_ms, write_metric
from svc_manager.domain import events as e
from svc_manager.domain import inputs as i
from svc_manager.domain.reports import (
    ExitCause,
    Exited,
    Lost,
    Report,
    Saying,
    Started,
    Waits,
)
from svc_manager.domain.values import Metric, Parameters

TEXT_LIMIT: Final = 64 * 1024
"""Longest text of others that goes to the log; of a traceback the end tells most."""

_CAUSES = {int(member): member for member in ExitCause}


def words_from(payload: bytes) -> list[i.Word]:
    """Return what one message of the INBOX says; empty if this version cannot tell.

    Raises:
        google.protobuf.message.DecodeError: it is no such message.
    """
    message = inbox_pb2.InboxMessage()
    message.ParseFromString(payload)
    kind = message.WhichOneof("kind")
    if kind is None:
        return []
    if kind == "runner_reports":
        reports = message.runner_reports
        return [
            report
            for item in reports.reports
            if (report := report_from(reports.runner_id, item)) is not None
        ]
    return [_WORDS[kind](getattr(message, kind))]


def report_from(runner_id: str, message: report_pb2.TrialReport) -> Report | None:
    """Return one report; None if this version does not know what it says."""
    kind = message.WhichOneof("kind")
    if kind is None:
        return None
    saying: Saying = _SAYINGS[kind](getattr(message, kind))
    return Report(
        runner_id, message.trial_id, message.attempt, message.sequence, message.claim_id, saying
    )


def write_report(message: report_pb2.TrialReport, report: Report) -> None:
    """Write a report into an empty message."""
    message.trial_id = report.trial_id
    message.attempt = report.attempt
    message.sequence = report.sequence
    message.claim_id = report.claim_id
    match report.saying:
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


def _started(message: report_pb2.AttemptStarted) -> Started:
    return Started(to_ms(message.started_at), message.pid, tuple(message.gpu_indices), message.warm)


def _exited(message: report_pb2.AttemptExited) -> Exited:
    return Exited(
        to_ms(message.ended_at),
        _CAUSES.get(message.cause, ExitCause.UNSPECIFIED),
        message.exit_code if message.HasField("exit_code") else None,
        message.signal,
        message.detail[-TEXT_LIMIT:],
    )


# `Any`: each function takes the message that its key names.
_SAYINGS: dict[str, Callable[[Any], Saying]] = {
    "started": _started,
    "metric": metric_from,
    "exited": _exited,
    "lost": lambda message: Lost(message.reason[:TEXT_LIMIT]),
    "waits": lambda message: Waits(message.reason[:TEXT_LIMIT]),
}


def algorithm_started_from(message: event_pb2.AlgorithmStarted) -> e.AlgorithmStarted:
    """Return the value of a message."""
    return e.AlgorithmStarted(
        message.generation, message.lookahead, message.assesses, dict(message.provenance)
    )


def parameters_generated_from(message: event_pb2.ParametersGenerated) -> e.ParametersGenerated:
    """Return the value of a message."""
    return e.ParametersGenerated(
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
    )


def algorithm_failed_from(message: event_pb2.AlgorithmFailed) -> e.AlgorithmFailed:
    """Return the value of a message."""
    return e.AlgorithmFailed(
        message.call[:TEXT_LIMIT],
        message.traceback[-TEXT_LIMIT:],
        (message.position.sequence, message.position.index),
        message.skipped,
    )


def algorithm_diverged_from(message: event_pb2.AlgorithmDiverged) -> e.AlgorithmDiverged:
    """Return the value of a message."""
    return e.AlgorithmDiverged(
        message.parameter_id,
        message.recorded.SerializeToString(),
        message.replayed.SerializeToString(),
    )


_WORDS: dict[str, Callable[[Any], i.Word]] = {
    "algorithm_started": algorithm_started_from,
    "parameters_generated": parameters_generated_from,
    "algorithm_failed": algorithm_failed_from,
    "algorithm_diverged": algorithm_diverged_from,
    "stop_advice": lambda message: i.StopAdvice(message.trial_id, message.reason[:TEXT_LIMIT]),
    "algorithm_gave_up": lambda message: i.AlgorithmGaveUp(
        message.generation, message.reason[-TEXT_LIMIT:]
    ),
}
