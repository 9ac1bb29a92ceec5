"""Policies that share trials among tuners."""

import json
import math

from nni.hpo.tuners._trial_shares import TrialShares


def run(shares: TrialShares, losses: list[float], trials: int) -> list[int]:
    """Run trials one after the other, each tuner with a loss of its own; return whose they were."""
    turns = []
    for _ in range(trials):
        index = shares.order()[0]
        shares.started(index)
        shares.succeeded(index, losses[index])
        turns.append(index)
    return turns


def test_equal_shares_take_turns_whatever_the_results_are() -> None:
    assert run(TrialShares("equal", 3), [0.0, 5.0, 9.0], 7) == [0, 1, 2, 0, 1, 2, 0]


def test_equal_shares_let_a_tuner_catch_up() -> None:
    shares = TrialShares("equal", 2)
    shares.started(0)
    shares.started(0)

    assert [run(shares, [0.0, 0.0], 1)[0] for _ in range(3)] == [1, 1, 0]


def test_bandit_gives_the_better_tuner_most_trials_after_five_of_each() -> None:
    turns = run(TrialShares("bandit", 3), [5.0, 1.0, 9.0], 60)

    assert turns[:15] == [0, 1, 2] * 5
    assert turns.count(1) == 50


def test_bandit_returns_to_a_tuner_after_the_better_one_gets_worse() -> None:
    shares = TrialShares("bandit", 2)
    run(shares, [1.0, 2.0], 30)

    assert run(shares, [9.0, 2.0], 60).count(1) > 30


def test_bandit_spreads_trials_that_run_at_the_same_time() -> None:
    shares = TrialShares("bandit", 2)
    for _ in range(6):
        shares.started(shares.order()[0])

    assert shares.trials == [3, 3]


def test_failures_and_results_without_a_finite_number_earn_nothing() -> None:
    shares = TrialShares("bandit", 2)
    for _ in range(10):
        for index in range(2):
            shares.started(index)
        shares.failed(0)
        shares.succeeded(0, math.nan)
        shares.succeeded(1, 1.0)

    assert shares.order() == [1, 0]


def test_state_survives_json() -> None:
    shares, other = TrialShares("bandit", 2), TrialShares("bandit", 2)
    run(shares, [1.0, 2.0], 25)

    other.load_state(json.loads(json.dumps(shares.state())))

    assert other.trials == shares.trials
    assert run(other, [1.0, 2.0], 25) == run(shares, [1.0, 2.0], 25)
