"""Selections of results."""

import numpy as np
import pytest

from nni.hpo.models.subsets import _farthest_first, covering_subset, quantile_subset


def test_few_results_are_all_kept() -> None:
    assert covering_subset(np.zeros((5, 2)), np.arange(5.0)[::-1], 5).tolist() == [0, 1, 2, 3, 4]


def test_the_best_are_kept_and_no_region_is_left_out() -> None:
    rng = np.random.default_rng(0)
    crowd, lonely = 0.5 + 0.01 * rng.standard_normal((395, 2)), rng.random((5, 2))
    points = np.concatenate([crowd, lonely])
    losses = np.concatenate([rng.random(395), 2 + rng.random(5)])

    kept = covering_subset(points, losses, 50)

    assert len(set(kept.tolist())) == 50
    assert set(np.argsort(losses)[:15]) <= set(kept)
    assert {395, 396, 397, 398, 399} <= set(kept)


def test_the_farthest_from_what_is_kept_comes_first() -> None:
    inputs = np.array([[0.0, 0.0], [1.0, 0.9], [0.3, 0.9]])

    chosen = _farthest_first(inputs, np.array([[1.0, 1.0]]), 2)

    assert chosen.tolist() == [0, 2]


def test_each_choice_is_the_farthest_from_those_before_it() -> None:
    inputs = np.array([[1.0], [10.0], [10.1], [5.0]])

    assert _farthest_first(inputs, np.array([[0.0]]), 4).tolist() == [2, 3, 0, 1]


def test_of_very_many_results_as_many_are_kept() -> None:
    rng = np.random.default_rng(1)

    kept = covering_subset(rng.random((5000, 3)), rng.random(5000), 300)

    assert len(set(kept.tolist())) == 300


@pytest.mark.parametrize("limit", [1, 7])
def test_results_at_one_point_are_kept_once_each(limit: int) -> None:
    kept = covering_subset(np.full((20, 2), 0.5), np.zeros(20), limit)

    assert len(set(kept.tolist())) == limit


def test_quantiles_hold_the_best_and_reach_the_worst() -> None:
    losses = np.random.default_rng(0).random(1000)

    kept = quantile_subset(losses, 100)

    assert len(set(kept.tolist())) == 100
    assert set(np.argsort(losses)[:50]) <= set(kept)
    assert int(np.argmax(losses)) in kept
    assert quantile_subset(losses[:100], 100).tolist() == list(range(100))


def test_one_result_of_many_is_the_best() -> None:
    losses = np.random.default_rng(0).random(9)

    assert covering_subset(np.arange(9.0)[:, None], losses, 1).tolist() == [int(losses.argmin())]


@pytest.mark.parametrize(("count", "lonely"), [(2001, 1), (2001, 1000), (2001, 2000), (4001, 4000)])
def test_result_far_from_the_others_is_kept(count: int, lonely: int) -> None:
    inputs = np.zeros((count, 1))
    inputs[lonely] = 1.0

    assert covering_subset(inputs, np.arange(float(count)), 2).tolist() == [0, lonely]


def test_first_of_very_many_others_is_regarded() -> None:
    inputs = np.zeros((4001, 1))
    inputs[1] = 1.0

    assert covering_subset(inputs, np.arange(4001.0), 2).tolist() == [0, 1]
