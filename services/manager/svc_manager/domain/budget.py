"""Budgets: how many trials may still be made, and the state that follows from them."""

from svc_manager.domain.experiment import ExperimentState
from svc_manager.domain.state import Experiment


def trials_left(experiment: Experiment) -> int | None:
    """Return how many more trials may be created; None: no limit.

    Every trial counts, whatever became of it.
    """
    limit = experiment.budget.max_trial_number
    return None if limit is None else max(0, limit - len(experiment.trials))


def time_left_ms(experiment: Experiment, now_ms: int) -> int | None:
    """Return the rest of the longest duration, 0 once it has passed; None: no limit."""
    limit = experiment.budget.max_duration_ms
    return None if limit is None else max(0, limit - experiment.execution_time_ms(now_ms))


def used_up(experiment: Experiment, now_ms: int) -> bool:
    """Tell whether a budget forbids another trial."""
    return trials_left(experiment) == 0 or time_left_ms(experiment, now_ms) == 0


def exhausted(experiment: Experiment) -> bool:
    """Tell whether the algorithm has nothing more, and everything it gave is a trial."""
    algorithm = experiment.algorithm
    return (
        algorithm.exhausted
        and not algorithm.queue
        and not algorithm.outstanding
        and not experiment.custom_queue
    )


def target_state(experiment: Experiment, now_ms: int) -> ExperimentState:
    """Return the state that trials and budgets call for; of a tuning experiment only."""
    out = used_up(experiment, now_ms)
    if experiment.live:
        if out:
            return ExperimentState.NO_MORE_TRIAL
        if exhausted(experiment):
            return ExperimentState.TUNER_NO_MORE_TRIAL
        return ExperimentState.RUNNING
    return ExperimentState.DONE if out or exhausted(experiment) else ExperimentState.RUNNING
