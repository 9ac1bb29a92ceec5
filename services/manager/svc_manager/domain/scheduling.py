"""Scheduling: creation of trials, requests for parameters, and the state that follows."""

from typing import Final

from svc_common.experiment_events.causes import ExperimentCause
from svc_manager.domain import events
from svc_manager.domain.budget import target_state, time_left_ms, trials_left
from svc_manager.domain.callers import Callers
from svc_manager.domain.decide_callers import (
    answer_asks,
    lose_lapsed,
    refuse_asks,
    unanswered_count,
)
from svc_manager.domain.decide_reports import lose_incomplete, next_gap_ms
from svc_manager.domain.decision_round import Round
from svc_manager.domain.experiment import TICKING_STATES, TUNING_STATES, ExperimentState
from svc_manager.domain.failed_starts import due_trials, may_start, next_start_ms
from svc_manager.domain.state import Experiment
from svc_manager.domain.values import ParameterSource

_STARTING_STATES: Final = TUNING_STATES | {ExperimentState.INITIALIZED, ExperimentState.ERROR}
"""States in which attempts are started."""

LARGEST_REQUEST: Final = 1000
"""Maximum sets of parameters of one request: the answer is one message, limited to 8 MB."""


COUNT_EVERY_MS: Final = 60_000
"""Longest silence in the log of an experiment whose time is limited.

After a restart the time since the last event may be time without a manager, or a step of the clock:
no more than this counts.
"""


def count_after_step(round_: Round, step_ms: int) -> None:
    """Leave a step of the clock, which happened before this round, out of the execution time."""
    if round_.experiment.state in TICKING_STATES:
        round_.count_time(round_.now_ms - step_ms)


def count_after_restart(round_: Round) -> None:
    """Exclude from counted time all but a minute of the log's silence before this manager."""
    experiment = round_.experiment
    counts_until_ms = experiment.logged_at_ms + COUNT_EVERY_MS
    if experiment.state in TICKING_STATES and counts_until_ms < round_.now_ms:
        round_.count_time(counts_until_ms)


_LIMITED_STATES: Final = frozenset({ExperimentState.RUNNING, ExperimentState.TUNER_NO_MORE_TRIAL})
"""States that the end of the time changes."""


def settle(round_: Round) -> None:
    """At a round's end, lose late attempts, create and request trials, change the state."""
    experiment = round_.experiment
    has_callers = experiment.settings.has_callers
    if experiment.deferred_since_ms:
        lose_incomplete(round_)
    if has_callers:
        lose_lapsed(round_)
    if experiment.backing_off and experiment.state in _STARTING_STATES:
        _requeue(round_)
    if experiment.state in TUNING_STATES:
        _schedule(round_)
        if has_callers:
            answer_asks(round_)
        _request(round_)
        _change_to_target(round_)
        _count_time(round_)
    elif experiment.state is ExperimentState.STOPPING and not experiment.live:
        if experiment.port:
            round_.emit(events.ListenerClosed())
        round_.change_state(ExperimentState.STOPPED)
        round_.end_experiment(ExperimentState.STOPPED)
    if has_callers:
        refuse_asks(round_)
        round_.callers.grant(experiment, round_.now_ms)


def _change_to_target(round_: Round) -> None:
    """Change to the state that trials and budgets imply, if it is another one."""
    experiment = round_.experiment
    target = target_state(experiment, round_.now_ms)
    if target is experiment.state:
        return
    if experiment.state is ExperimentState.DONE and experiment.live:
        # A trial that a user has added: no log goes from DONE to another state than this one.
        round_.change_state(ExperimentState.RUNNING)
    if target is not experiment.state:
        round_.change_state(target, _state_cause(experiment, target, round_.now_ms))


def next_moment_ms(
    experiment: Experiment, now_ms: int, callers: Callers | None = None
) -> int | None:
    """Return the earliest due time of time limit, back-off, lease or report gap; None: none."""
    moments = []
    lapse_ms = None if callers is None else callers.next_lapse_ms
    if lapse_ms is not None:
        moments.append(lapse_ms)
    if experiment.state in _LIMITED_STATES:
        left = time_left_ms(experiment, now_ms)
        if left is not None:
            moments += [now_ms + left, experiment.logged_at_ms + COUNT_EVERY_MS]
    if experiment.state in _STARTING_STATES:
        start_ms = next_start_ms(experiment)
        # A trial that backs off starts then; a new one may, once there are parameters.
        if start_ms is not None and (experiment.backing_off or start_ms > now_ms):
            moments.append(max(now_ms, start_ms))
    gap_ms = next_gap_ms(experiment)
    if gap_ms is not None:
        moments.append(gap_ms)
    return min(moments, default=None)


def _count_time(round_: Round) -> None:
    """Emit the execution time if it is limited and the log has been silent for a minute."""
    experiment = round_.experiment
    silent_ms = round_.now_ms - experiment.logged_at_ms
    if (
        silent_ms >= COUNT_EVERY_MS
        and experiment.state in _LIMITED_STATES
        and experiment.budget.max_duration_ms is not None
    ):
        round_.count_time(round_.now_ms)


def free_slots(experiment: Experiment) -> int:
    """Return the concurrency less the live trials, at least 0; budgets are not checked."""
    return max(0, experiment.budget.trial_concurrency - len(experiment.live))


def _free_slots(round_: Round) -> int:
    """Return `free_slots`, or for a shared study the number of asks that still need parameters."""
    if round_.experiment.settings.has_callers:
        return unanswered_count(round_)
    return free_slots(round_.experiment)


def _schedule(round_: Round) -> None:
    experiment = round_.experiment
    if time_left_ms(experiment, round_.now_ms) == 0:
        return
    count = _free_slots(round_)
    left = trials_left(experiment)
    if left is not None:
        count = min(count, left)
    probes = may_start(experiment, round_.now_ms)
    if probes is not None:
        count = min(count, probes)
    for _ in range(count):
        if experiment.custom_queue:
            parameter_id = next(iter(experiment.custom_queue))
            parameters = experiment.custom_queue[parameter_id]
            round_.create_trial(parameter_id, parameters, ParameterSource.CUSTOMIZED)
        elif experiment.algorithm.queue:
            suggested = next(iter(experiment.algorithm.queue.values()))
            round_.create_trial(
                suggested.parameter_id, suggested.parameters, ParameterSource.ALGORITHM
            )
        else:
            return


def _requeue(round_: Round) -> None:
    """Emit `TrialRequeued` for each trial whose back-off after a failed start is over."""
    for trial_id in due_trials(round_.experiment, round_.now_ms):
        trial = round_.experiment.trials[trial_id]
        round_.emit(events.TrialRequeued(trial_id, trial.attempt))


def _request(round_: Round) -> None:
    experiment = round_.experiment
    algorithm = experiment.algorithm
    if not algorithm.started or algorithm.exhausted:
        return
    if time_left_ms(experiment, round_.now_ms) == 0:
        return
    ahead = len(algorithm.queue) + len(experiment.custom_queue) + algorithm.outstanding
    # A learning algorithm is asked when a slot is free, never earlier; one that never learns may
    # be asked up to one concurrency ahead.
    reserve = experiment.budget.trial_concurrency if algorithm.lookahead else 0
    wanted = _free_slots(round_) + reserve - ahead
    left = trials_left(experiment)
    if left is not None:
        wanted = min(wanted, left - ahead)
    while wanted > 0:
        count = min(wanted, LARGEST_REQUEST)
        wanted -= count
        first = experiment.next_parameter_id
        round_.emit(
            events.TrialsRequested(
                f"{algorithm.generation}-{algorithm.request_count}",
                tuple(range(first, first + count)),
            )
        )


def _state_cause(experiment: Experiment, target: ExperimentState, now_ms: int) -> ExperimentCause:
    if target in {ExperimentState.NO_MORE_TRIAL, ExperimentState.DONE}:
        if trials_left(experiment) == 0:
            return ExperimentCause.TRIAL_NUMBER
        if time_left_ms(experiment, now_ms) == 0:
            return ExperimentCause.DURATION
    if target in {ExperimentState.TUNER_NO_MORE_TRIAL, ExperimentState.DONE}:
        return ExperimentCause.NO_MORE_PARAMETERS
    return ExperimentCause.UNSPECIFIED
