"""Gaussian process over architectures, and the search for the next one."""

from random import Random

import numpy as np
import pytest

from nni.hpo.models.targets import warped
from nni.hpo.tuners.network_morphism.morphs import children, default_graph
from nni.hpo.tuners.network_morphism.search import BayesianOptimizer, Evaluated, fitted_model

FIRST = default_graph((8, 8, 3), 4, length=2, width=8)


def test_predictions_follow_the_results_and_are_uncertain_far_from_them() -> None:
    apart = np.abs(np.arange(6.0)[:, None] - np.arange(6.0)[None, :])
    model = fitted_model([], apart, np.arange(6.0))

    means, deviations = model.predict(np.vstack([apart, np.full(6, 1000.0)]))

    assert np.all(np.diff(means[:6]) > 0)
    assert deviations[-1] == pytest.approx(1.0)
    assert deviations[:6].max() < 0.5


def test_nothing_is_proposed_before_a_result() -> None:
    assert BayesianOptimizer(2.576, 1e-4, 10**6).generate(set(), Random(0)) is None


def test_proposals_are_new_small_and_name_their_parent() -> None:
    rng, limit = Random(0), FIRST.size() * 2
    optimizer = BayesianOptimizer(2.576, 0.01, limit)
    optimizer.add(Evaluated(7, FIRST, 1.0))
    taken = {FIRST.architecture}

    for number in range(8, 20):
        found = optimizer.generate(taken, rng)
        assert found is not None
        parent, graph = found
        assert parent in {one.model_id for one in optimizer.history}
        assert graph.size() <= limit
        assert graph.architecture not in taken
        taken.add(graph.architecture)
        optimizer.add(Evaluated(number, graph, 1.0 / number))


def test_children_that_are_too_large_are_left_out() -> None:
    small = BayesianOptimizer(2.576, 1e-4, FIRST.size())

    assert list(children(FIRST, Random(0)))
    assert small.new_children(FIRST, set(), Random(0)) == []


def test_smooth_results_have_a_longer_lengthscale_than_rough_ones() -> None:
    apart = np.abs(np.arange(16.0)[:, None] - np.arange(16.0)[None, :])

    smooth = fitted_model([], apart, np.arange(16.0))
    rough = fitted_model([], apart, np.random.default_rng(0).random(16))

    assert smooth.lengthscale > rough.lengthscale


def test_noise_is_found_where_equal_architectures_differ() -> None:
    places = np.repeat(np.arange(8.0), 2)
    apart = np.abs(places[:, None] - places[None, :])
    exact = fitted_model([], apart, np.sin(places))
    noisy = fitted_model([], apart, np.sin(places) + 2.0 * (np.arange(16) % 2))

    deviations = [model.predict(apart[:1])[1][0] for model in (exact, noisy)]

    assert deviations[0] < 0.3 * deviations[1]


def test_model_is_the_likeliest_of_a_few() -> None:
    places = np.sort(np.random.default_rng(0).random(9)) * 9
    apart, losses = np.abs(places[:, None] - places[None, :]), np.sin(places)
    targets = warped(losses)
    found = fitted_model([], apart, losses)

    def likelihood(lengthscale: float, noise: float) -> float:
        covariance = np.exp(-apart / lengthscale) + noise * np.eye(9)
        fit = float(targets @ np.linalg.solve(covariance, targets))
        return -0.5 * (fit + float(np.linalg.slogdet(covariance)[1]))

    options = [(one, noise) for one in (0.5, 1, 2, 4, 8, 16) for noise in (1e-3, 1e-2, 1e-1)]
    lengthscale, noise = max(options, key=lambda option: likelihood(*option))
    covariance = np.exp(-apart / lengthscale) + noise * np.eye(9)
    away = np.abs(places - 3.3)
    across = np.exp(-away / lengthscale)
    solved = np.linalg.solve(covariance, across)
    means, deviations = found.predict(away[None, :])
    assert found.lengthscale == lengthscale
    assert means[0] == pytest.approx(float(solved @ targets))
    assert deviations[0] ** 2 == pytest.approx(1.0 - float(across @ solved))


def test_hundred_best_and_hundred_newest_results_are_modelled() -> None:
    optimizer = BayesianOptimizer(2.576, 0.01, 10**6)
    optimizer._history = [Evaluated(number, FIRST, float(number)) for number in range(250)]

    assert optimizer._modelled() == [*range(100), *range(150, 250)]


def test_child_of_the_greatest_size_is_small_enough() -> None:
    sizes = sorted(child.size() for child in children(FIRST, Random(0)))
    limited = BayesianOptimizer(2.576, 0.01, sizes[-1])
    smaller = BayesianOptimizer(2.576, 0.01, sizes[-1] - 1)

    found = limited.new_children(FIRST, set(), Random(0))

    assert sorted(child.size() for child in found) == sizes
    assert len(smaller.new_children(FIRST, set(), Random(0))) < len(sizes)
    assert limited.new_children(FIRST, {child.architecture for child in found}, Random(0)) == []
