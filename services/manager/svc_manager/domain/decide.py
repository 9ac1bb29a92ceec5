"""Entry points of all decisions: an input goes in, events are emitted into the round."""

from typing import Final, assert_never

from svc_common.experiment_events.causes import ExperimentCause, StopCause, StopReason
from svc_manager.domain import events, inputs
from svc_manager.domain.decide_commands import decide_command
from svc_manager.domain.decide_reports import (
    decide_agent_change,
    decide_agent_seen,
    decide_report,
)
from svc_manager.domain.decision_round import Round
from svc_manager.domain.experiment import CLOSED_STATES, TUNING_STATES, ExperimentState
from svc_manager.domain.reports import Report
from svc_manager.domain.requests import check_repetition, fingerprint
from svc_manager.domain.trial import TrialState

__all__ = ["decide_command", "decide_notification", "decide_recorded"]


_OF_AGENTS: Final = (
    Report,
    inputs.AgentSeen,
    inputs.AgentOverdue,
    inputs.AgentRestarted,
    inputs.AgentSilent,
    inputs.AgentGone,
    inputs.AttemptGone,
)


def decide_recorded(round_: Round, recorded: inputs.RecordedCommand) -> None:
    """Decide on a user's command and record its request id; skip a repetition of a known id.

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
    """Emit a notification's events, by its type; ignore agents if callers run the trials."""
    if round_.experiment.settings.has_callers and isinstance(notification, _OF_AGENTS):
        return  # no agent runs its trials, whatever one reports
    match notification:
        case Report():
            decide_report(round_, notification)
        case events.ParametersGenerated():
            _parameters_generated(round_, notification)
        case inputs.AgentSeen():
            decide_agent_seen(round_, notification)
        case inputs.Tick():
            pass  # `settle`, which ends every round, reads the clock
        case inputs.StopAdvice():
            _stop_advice(round_, notification)
        case (
            inputs.AgentOverdue()
            | inputs.AgentRestarted()
            | inputs.AgentSilent()
            | inputs.AgentGone()
            | inputs.AttemptGone()
        ):
            decide_agent_change(round_, notification)
        case _:
            _decide_algorithm(round_, notification)


def _decide_algorithm(
    round_: Round,
    notification: events.AlgorithmStarted
    | events.AlgorithmFailed
    | events.AlgorithmDiverged
    | events.AlgorithmWaits
    | inputs.AlgorithmGaveUp,
) -> None:
    """Emit the events for a start, failure, divergence, delay or final failure of the algorithm."""
    match notification:
        case events.AlgorithmStarted():
            _algorithm_started(round_, notification)
        case events.AlgorithmFailed():
            _algorithm_failed(round_, notification)
        case events.AlgorithmDiverged():
            round_.emit(notification)
        case events.AlgorithmWaits():
            _algorithm_waits(round_, notification)
        case inputs.AlgorithmGaveUp():
            _algorithm_gave_up(round_, notification)
        case _:
            assert_never(notification)


def _algorithm_started(round_: Round, notification: events.AlgorithmStarted) -> None:
    experiment = round_.experiment
    algorithm = experiment.algorithm
    if notification.generation != algorithm.generation or algorithm.started:
        return
    if experiment.state is ExperimentState.INITIALIZED:
        round_.emit(notification)
        round_.change_state(ExperimentState.RUNNING, ExperimentCause.ALGORITHM_STARTED)
    elif experiment.state in TUNING_STATES:  # another tuner has taken over
        round_.emit(notification)


def _parameters_generated(round_: Round, notification: events.ParametersGenerated) -> None:
    algorithm = round_.experiment.algorithm
    if notification.request_id:
        if notification.request_id in algorithm.asked:
            round_.emit(notification)
        return
    if not algorithm.started:
        return  # deferred by a tuner that was replaced, whose reports precede the start of the next
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
        stop = StopReason(StopCause.ASSESSOR, notification.detail)
        round_.cancel_trial(trial, TrialState.EARLY_STOPPED, stop)


def _algorithm_waits(round_: Round, notification: events.AlgorithmWaits) -> None:
    algorithm = round_.experiment.algorithm
    current = notification.generation == algorithm.generation
    if current and notification.reason != algorithm.wait_reason:
        round_.emit(notification)


def _algorithm_gave_up(round_: Round, notification: inputs.AlgorithmGaveUp) -> None:
    experiment = round_.experiment
    if notification.generation not in {0, experiment.algorithm.generation}:
        return
    over = CLOSED_STATES | {ExperimentState.ERROR, ExperimentState.STOPPING}
    if experiment.state not in over:
        cause, detail = ExperimentCause.ALGORITHM_GAVE_UP, notification.detail
        round_.change_state(ExperimentState.ERROR, cause, detail)
        round_.end_experiment(ExperimentState.ERROR, cause, detail)


def _algorithm_failed(round_: Round, notification: events.AlgorithmFailed) -> None:
    if (notification.call, notification.position) not in round_.experiment.failures:
        round_.emit(notification)
