"""Policies that share trials among tuners."""

import json
import math

import pytest

from nni.hpo.tuners._trial_shares import SharePolicy, TrialShares


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


@pytest.mark.parametrize("policy", ["equal", "bandit"])
def test_ties_go_to_the_tuner_with_the_fewest_trials_then_to_the_first(
    policy: SharePolicy,
) -> None:
    shares = TrialShares(policy, 3)
    assert shares.order() == [0, 1, 2]

    shares.started(0)
    assert shares.order() == [1, 2, 0]


def bound(mean: float, own: int, total: int) -> float:
    return mean + 0.5 * math.sqrt(math.log(total) / own)


@pytest.mark.parametrize("rest", [5, 6, 7, 8, 10, 20])
@pytest.mark.parametrize(
    ("rewards", "mean"), [([], 0.5), ([0], 0.0), ([1], 1.0), ([1, 0, 0], 1 / 3)]
)
def test_bandit_compares_mean_rewards_with_a_bound_that_falls_with_trials(
    rewards: list[int], mean: float, rest: int
) -> None:
    shares = TrialShares("bandit", 2)
    shares.load_state({"trials": [5, rest], "rewards": [rewards, [0, 1]], "losses": []})

    first = bound(mean, 5, 5 + rest) >= bound(0.5, rest, 5 + rest)

    assert shares.order() == ([0, 1] if first else [1, 0])


@pytest.mark.parametrize(("loss", "reward"), [(1.0, 1), (2.0, 1), (2.5, 0), (9.0, 0)])
def test_a_result_among_the_best_quarter_is_rewarded(loss: float, reward: int) -> None:
    shares = TrialShares("bandit", 1)
    shares.load_state({"trials": [7], "rewards": [[]], "losses": [1, 2, 3, 4, 5, 6, 7]})

    shares.succeeded(0, loss)

    assert shares.state()["rewards"] == [[reward]]
    assert shares.state()["losses"] == sorted([1, 2, 3, 4, 5, 6, 7, loss])


@pytest.mark.parametrize("restored", [False, True])
def test_the_last_twenty_rewards_of_a_tuner_count(restored: bool) -> None:
    shares = TrialShares("bandit", 1)
    if restored:
        shares.load_state(shares.state())
    shares.succeeded(0, 1.0)
    for _ in range(19):
        shares.failed(0)
    assert shares.state()["rewards"] == [[1] + [0] * 19]

    shares.failed(0)

    assert shares.state()["rewards"] == [[0] * 20]
