"""The one entry to all decisions: an input goes in, facts come out of the round."""

from collections.abc import Callable
from typing import Any

from svc_manager.domain import events as e
from svc_manager.domain import inputs as i
from svc_manager.domain.decide_commands import decide_command
from svc_manager.domain.decide_reports import (
    decide_attempt_gone,
    decide_report,
    decide_runner_gone,
    decide_runner_missed,
    decide_runner_restarted,
    decide_runner_seen,
    decide_runner_silent,
)
from svc_manager.domain.decision_round import Round
from svc_manager.domain.experiment import CLOSED_STATES, ExperimentState
from svc_manager.domain.reports import Report
from svc_manager.domain.requests import check_repetition, fingerprint
from svc_manager.domain.trial import TrialState

__all__ = ["decide_command", "decide_recorded", "decide_word"]


def decide_recorded(round_: Round, recorded: i.Recorded) -> None:
    """Carry out a command once, however often it is sent.

    Raises:
        ServiceError: it is refused; nothing has changed.
    """
    request_id = recorded.request_id
    print_ = recorded.fingerprint or fingerprint(recorded.command)
    known = round_.experiment.requests.get(request_id)
    if request_id and known is not None:
        check_repetition(known, request_id, recorded.method, print_)
        return
    decide_command(round_, recorded.command)
    if request_id:
        round_.emit(e.RequestRecorded(request_id, recorded.user, recorded.method, print_))


def decide_word(round_: Round, word: i.Word) -> None:
    """State what follows from a word that needs no answer."""
    _WORDS[type(word)](round_, word)


def _algorithm_started(round_: Round, word: e.AlgorithmStarted) -> None:
    experiment = round_.experiment
    algorithm = experiment.algorithm
    if word.generation != algorithm.generation or algorithm.started:
        return
    if experiment.state is not ExperimentState.INITIALIZED:
        return
    round_.emit(word)
    round_.change_state(ExperimentState.RUNNING, "the algorithm has started")


def _parameters_generated(round_: Round, word: e.ParametersGenerated) -> None:
    algorithm = round_.experiment.algorithm
    if word.request_id:
        if word.request_id in algorithm.asked:
            round_.emit(word)
        return
    fresh = tuple(item for item in word.parameters if item.parameter_id in algorithm.late_ids)
    ends = word.exhausted and (algorithm.late_count > len(fresh) or not algorithm.exhausted)
    if fresh or ends:
        round_.emit(e.ParametersGenerated("", fresh, word.exhausted, word.deferred, word.based_on))


def _stop_advice(round_: Round, word: i.StopAdvice) -> None:
    trial = round_.experiment.trials.get(word.trial_id)
    if trial is not None and trial.live:
        round_.cancel_trial(trial, TrialState.EARLY_STOPPED, word.reason or "stopped early")


def _gave_up(round_: Round, word: i.AlgorithmGaveUp) -> None:
    experiment = round_.experiment
    if word.generation not in {0, experiment.algorithm.generation}:
        return
    over = CLOSED_STATES | {ExperimentState.ERROR, ExperimentState.STOPPING}
    if experiment.state not in over:
        round_.change_state(ExperimentState.ERROR, word.reason)
        round_.emit(e.ExperimentEnded(ExperimentState.ERROR, word.reason))


def _algorithm_failed(round_: Round, word: e.AlgorithmFailed) -> None:
    if (word.call, word.position) not in round_.experiment.failures:
        round_.emit(word)


def _algorithm_diverged(round_: Round, word: e.AlgorithmDiverged) -> None:
    round_.emit(word)


def _tick(_round: Round, _word: i.Tick) -> None:
    """Nothing: settling looks at the clock."""


# `Any`: each function takes the type of word that it stands beside.
_WORDS: dict[type, Callable[[Round, Any], None]] = {
    Report: decide_report,
    e.ParametersGenerated: _parameters_generated,
    e.AlgorithmStarted: _algorithm_started,
    e.AlgorithmFailed: _algorithm_failed,
    e.AlgorithmDiverged: _algorithm_diverged,
    i.StopAdvice: _stop_advice,
    i.AlgorithmGaveUp: _gave_up,
    i.RunnerSeen: decide_runner_seen,
    i.RunnerMissed: decide_runner_missed,
    i.RunnerRestarted: decide_runner_restarted,
    i.RunnerSilent: decide_runner_silent,
    i.RunnerGone: decide_runner_gone,
    i.AttemptGone: decide_attempt_gone,
    i.Tick: _tick,
}
