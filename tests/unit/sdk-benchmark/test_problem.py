"""Observations of a searcher, and its regret."""

from __future__ import annotations

import math

import pytest

from nni_benchmark.problem import Configuration, Evaluation, Problem, floats, hypervolume, uniform

LINE = Problem("line", {"x0": uniform(0, 10)}, lambda point: (point["x0"],), optimum=1.0)


def values(problem: Problem, points: list[Configuration], seed: int = 0) -> Evaluation:
    evaluation = Evaluation(problem, seed, len(points))
    for point in points:
        evaluation(point)
    return evaluation


def test_regret_is_that_of_the_best_point_so_far() -> None:
    evaluation = values(LINE, [{"x0": 5.0}, {"x0": 7.0}, {"x0": 2.0}])

    assert evaluation.regrets == [4.0, 4.0, 1.0]
    assert evaluation.left == 0


def test_spent_search_is_refused_another_point() -> None:
    evaluation = values(LINE, [{"x0": 5.0}])

    with pytest.raises(ValueError, match="1 trials of this search are spent"):
        evaluation({"x0": 1.0})


def test_noise_is_seen_but_regret_is_of_the_true_loss() -> None:
    noisy = Problem("noisy", LINE.space, LINE.losses, 1.0, frozenset({"noisy"}), noise=1.0)

    evaluation = Evaluation(noisy, 3, 1)
    outcome = evaluation({"x0": 5.0})

    assert outcome.losses is not None
    assert outcome.losses[0] != 5.0
    assert evaluation.regrets == [4.0]


def test_noise_follows_from_the_seed() -> None:
    noisy = Problem("noisy", LINE.space, LINE.losses, 1.0, noise=1.0)

    seen = [Evaluation(noisy, seed, 1)({"x0": 5.0}).losses for seed in (0, 0, 1)]

    assert seen[0] == seen[1] != seen[2]


def test_point_against_a_constraint_costs_a_trial_and_is_not_evaluated() -> None:
    space = {**floats(2, 0, 10), "_constraints": ["x0 + x1 <= 10"]}
    problem = Problem("bound", space, lambda point: (point["x0"],), 0.0)
    evaluation = Evaluation(problem, 0, 2)

    assert evaluation({"x0": 9.0, "x1": 9.0}).losses is None
    assert evaluation({"x0": 9.0, "x1": 1.0}).losses == (9.0,)
    assert evaluation.regrets == [math.inf, 9.0]


def test_point_beyond_a_limit_does_not_count() -> None:
    problem = Problem(
        "limited", LINE.space, LINE.losses, 0.0, excess=lambda point: 3.0 - point["x0"]
    )
    evaluation = Evaluation(problem, 0, 2)

    assert evaluation({"x0": 1.0}).excess == 2.0
    assert evaluation({"x0": 4.0}).excess == 0.0
    assert evaluation.regrets == [math.inf, 4.0]


def test_with_several_objectives_regret_is_the_missing_hypervolume() -> None:
    problem = Problem(
        "two",
        floats(2, 0, 1),
        lambda point: (point["x0"], point["x1"]),
        -1.0,
        reference=(1.0, 1.0),
    )

    evaluation = values(problem, [{"x0": 0.5, "x1": 0.5}, {"x0": 0.0, "x1": 0.75}])

    assert evaluation.regrets == [0.75, 0.625]
    assert problem.metrics == ("loss", "loss1")


def test_hypervolume_leaves_out_what_lies_beyond_the_reference() -> None:
    assert hypervolume([(0.0, 0.0), (2.0, -1.0)], (1.0, 1.0)) == 1.0
    assert hypervolume([], (1.0, 1.0)) == 0.0
