"""Budgets: remaining trials and time, and the experiment state that follows from them."""

from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.state import Experiment


def trials_left(experiment: Experiment) -> int | None:
    """Return the trial limit less the trials created so far; None: there is no limit.

    Every created trial counts, whatever its outcome.
    """
    limit = experiment.budget.max_trial_number
    return None if limit is None else max(0, limit - len(experiment.trials))


def time_left_ms(experiment: Experiment, now_ms: int) -> int | None:
    """Return the rest of the maximum duration, 0 once it has passed; None: no limit."""
    limit = experiment.budget.max_duration_ms
    return None if limit is None else max(0, limit - experiment.execution_time_ms(now_ms))


def used_up(experiment: Experiment, now_ms: int) -> bool:
    """Return whether no trial or no time is left; live trials may still run."""
    return trials_left(experiment) == 0 or time_left_ms(experiment, now_ms) == 0


def exhausted(experiment: Experiment) -> bool:
    """Return whether the algorithm is finished and no request or queued parameters are left."""
    algorithm = experiment.algorithm
    return (
        algorithm.exhausted
        and not algorithm.queue
        and not algorithm.outstanding
        and not experiment.custom_queue
    )


def target_state(experiment: Experiment, now_ms: int) -> ExperimentState:
    """Return the state for live trials and budgets: RUNNING, a NO_MORE_TRIAL state or DONE."""
    out = used_up(experiment, now_ms)
    if experiment.live:
        if out:
            return ExperimentState.NO_MORE_TRIAL
        if exhausted(experiment):
            return ExperimentState.TUNER_NO_MORE_TRIAL
        return ExperimentState.RUNNING
    return ExperimentState.DONE if out or exhausted(experiment) else ExperimentState.RUNNING
