"""Entry points of all decisions: an input goes in, events are emitted into the round."""

from collections.abc import Callable
from typing import Any

from svc_manager.domain import events, inputs
from svc_manager.domain.decide_commands import decide_command
from svc_manager.domain.decide_reports import (
    decide_agent_gone,
    decide_agent_overdue,
    decide_agent_restarted,
    decide_agent_seen,
    decide_agent_silent,
    decide_attempt_gone,
    decide_report,
)
from svc_manager.domain.decision_round import Round
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.reports import Report
from svc_manager.domain.requests import check_repetition, fingerprint
from svc_manager.domain.trial import TrialState

__all__ = ["decide_command", "decide_notification", "decide_recorded"]


def decide_recorded(round_: Round, recorded: inputs.RecordedCommand) -> None:
    """Decide on a command; a repetition of a recorded request has no effect.

    Raises:
        ServiceError: the command is refused; nothing has changed.
    """
    request_id = recorded.request_id
    digest = recorded.fingerprint or fingerprint(recorded.command)
    known = round_.experiment.requests.get(request_id)
    if request_id and known is not None:
        check_repetition(known, request_id, recorded.method, digest)
        return
    decide_command(round_, recorded.command)
    if request_id:
        round_.emit(events.RequestRecorded(request_id, recorded.user, recorded.method, digest))


def decide_notification(round_: Round, notification: inputs.Notification) -> None:
    """Decide on a notification."""
    _NOTIFICATIONS[type(notification)](round_, notification)


def _algorithm_started(round_: Round, notification: events.AlgorithmStarted) -> None:
    experiment = round_.experiment
    algorithm = experiment.algorithm
    if notification.generation != algorithm.generation or algorithm.started:
        return
    if experiment.state is not ExperimentState.INITIALIZED:
        return
    round_.emit(notification)
    round_.change_state(ExperimentState.RUNNING, "the algorithm has started")


def _parameters_generated(round_: Round, notification: events.ParametersGenerated) -> None:
    algorithm = round_.experiment.algorithm
    if notification.request_id:
        if notification.request_id in algorithm.asked:
            round_.emit(notification)
        return
    fresh = tuple(
        item for item in notification.parameters if item.parameter_id in algorithm.late_ids
    )
    ends = notification.exhausted and (algorithm.late_count > len(fresh) or not algorithm.exhausted)
    if fresh or ends:
        round_.emit(
            events.ParametersGenerated(
                "", fresh, notification.exhausted, notification.deferred, notification.based_on
            )
        )


def _stop_advice(round_: Round, notification: inputs.StopAdvice) -> None:
    trial = round_.experiment.trials.get(notification.trial_id)
    if trial is not None and trial.live:
        round_.cancel_trial(trial, TrialState.EARLY_STOPPED, notification.reason or "stopped early")


def _algorithm_gave_up(round_: Round, notification: inputs.AlgorithmGaveUp) -> None:
    experiment = round_.experiment
    if notification.generation not in {0, experiment.algorithm.generation}:
        return
    over = CLOSED_STATES | {ExperimentState.ERROR, ExperimentState.STOPPING}
    if experiment.state not in over:
        round_.change_state(ExperimentState.ERROR, notification.reason)
        round_.emit(events.ExperimentEnded(ExperimentState.ERROR, notification.reason))


def _algorithm_failed(round_: Round, notification: events.AlgorithmFailed) -> None:
    if (notification.call, notification.position) not in round_.experiment.failures:
        round_.emit(notification)


def _algorithm_diverged(round_: Round, notification: events.AlgorithmDiverged) -> None:
    round_.emit(notification)


def _tick(_round: Round, _word: inputs.Tick) -> None:
    """Do nothing: `settle`, which ends every round, reads the clock."""


# `Any`: each function takes the type of its key.
_NOTIFICATIONS: dict[type, Callable[[Round, Any], None]] = {
    Report: decide_report,
    events.ParametersGenerated: _parameters_generated,
    events.AlgorithmStarted: _algorithm_started,
    events.AlgorithmFailed: _algorithm_failed,
    events.AlgorithmDiverged: _algorithm_diverged,
    inputs.StopAdvice: _stop_advice,
    inputs.AlgorithmGaveUp: _algorithm_gave_up,
    inputs.AgentSeen: decide_agent_seen,
    inputs.AgentOverdue: decide_agent_overdue,
    inputs.AgentRestarted: decide_agent_restarted,
    inputs.AgentSilent: decide_agent_silent,
    inputs.AgentGone: decide_agent_gone,
    inputs.AttemptGone: decide_attempt_gone,
    inputs.Tick: _tick,
}
