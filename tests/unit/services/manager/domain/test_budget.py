import pytest

from svc_manager.domain.budget import target_state, time_left_ms, trials_left, used_up
from svc_manager.domain.experiment import Budget, ExperimentState
from svc_manager.domain.state import Experiment
from svc_manager.domain.trial import Trial
from svc_manager.domain.values import ParameterSource


def with_trials(budget: Budget, *, live: int, over: int, exhausted: bool = False) -> Experiment:
    experiment = Experiment(state=ExperimentState.RUNNING, budget=budget)
    experiment.algorithm.exhausted = exhausted
    for number in range(live + over):
        trial = Trial(f"{number}", number, number, b"", b"", ParameterSource.ALGORITHM, "local", 0)
        experiment.trials[trial.id] = trial
        if number < live:
            experiment.live[trial.id] = trial
    return experiment


def test_without_limits_nothing_is_used_up() -> None:
    experiment = with_trials(Budget(), live=1, over=10_000)

    assert trials_left(experiment) is None
    assert time_left_ms(experiment, 10**12) is None
    assert not used_up(experiment, 10**12)


def test_the_rest_is_never_negative() -> None:
    experiment = with_trials(Budget(max_trial_number=2, max_duration_ms=5), live=3, over=0)

    assert trials_left(experiment) == 0
    assert time_left_ms(experiment, 100) == 0


@pytest.mark.parametrize(
    ("live", "over", "exhausted", "state"),
    [
        (0, 0, False, "RUNNING"),
        (1, 1, False, "RUNNING"),
        (1, 1, True, "TUNER_NO_MORE_TRIAL"),
        (1, 2, False, "NO_MORE_TRIAL"),
        (1, 2, True, "NO_MORE_TRIAL"),
        (0, 2, True, "DONE"),
        (0, 3, False, "DONE"),
    ],
)
def test_the_state_that_trials_and_budget_call_for(
    live: int, over: int, exhausted: bool, state: str
) -> None:
    experiment = with_trials(Budget(max_trial_number=3), live=live, over=over, exhausted=exhausted)

    assert target_state(experiment, 0).name == state
