"""Surrogates of earlier searches."""

from statistics import NormalDist

import numpy as np
import pytest

from nni.hpo.models.earlier_tasks import MOST_RESULTS, earlier_task, normal_scores
from nni.hpo.models.gp_regression import (
    Kernel,
    fit_hyperparameters,
    gp_posterior,
    initial_hyperparameters,
)
from nni.hpo.models.matern import Matern

AXES = np.array([0, 1])
BOTH = np.array([0, 1])


def inputs(count: int) -> np.ndarray:
    return np.random.default_rng(0).random((count, 2))


def test_scores_depend_on_ranks_only() -> None:
    losses = np.array([3.0, -1.0, 10.0, 2.0])

    assert normal_scores(losses).tolist() == normal_scores(np.exp(losses)).tolist()
    assert normal_scores(losses).argsort().tolist() == losses.argsort().tolist()
    assert normal_scores(losses).sum() == pytest.approx(0.0)


def test_equal_losses_have_the_same_score() -> None:
    scores = normal_scores(np.array([1.0, 1.0, 2.0, 1.0]))

    assert scores[0] == scores[1] == scores[3] < scores[2]


def test_surrogate_is_low_where_the_search_found_good_results() -> None:
    features = inputs(40)
    task = earlier_task(features, BOTH, AXES, 1e6 * ((features - 0.3) ** 2).sum(axis=1))

    assert task is not None
    near, far = task.scores(np.array([[0.3, 0.3], [0.9, 0.9]]))
    assert near < -1 < 0 < far


def test_parameter_that_the_search_did_not_have_is_not_regarded() -> None:
    features = inputs(20)
    task = earlier_task(features, np.array([1]), AXES, features[:, 1])

    assert task is not None
    assert task.axes.tolist() == [1]
    low, high = task.scores(np.array([[0.0, 0.5], [1.0, 0.5]]))
    assert low == high


def test_search_with_too_few_or_equal_results_has_no_surrogate() -> None:
    assert earlier_task(inputs(2), BOTH, AXES, np.array([1.0, 2.0])) is None
    assert earlier_task(inputs(5), BOTH, AXES, np.ones(5)) is None
    assert earlier_task(inputs(5), np.array([], dtype=np.int64), AXES, np.arange(5.0)) is None


def test_long_search_is_reduced_to_its_most_telling_results() -> None:
    features = inputs(MOST_RESULTS + 50)
    task = earlier_task(features, BOTH, AXES, features[:, 0])

    assert task is not None
    assert len(task.posterior.scaled_inputs) == MOST_RESULTS


def test_three_results_have_a_surrogate() -> None:
    assert earlier_task(inputs(3), BOTH, AXES, np.array([1.0, 2.0, 2.0])) is not None


def test_surrogate_is_a_process_of_at_most_eighty_scores_fitted_in_twelve_evaluations() -> None:
    features = inputs(100)
    losses = features[:, 0]

    task = earlier_task(features, BOTH, AXES, losses)

    order = np.argsort(losses)
    kept = np.sort(np.append(order[:40], order[np.linspace(40, 99, 40).round().astype(int)]))
    scores = np.array([NormalDist().inv_cdf((rank + 0.5) / 100) for rank in order.argsort()])
    kernel = Kernel(AXES, Matern.of(2.5), least_noise=1e-4)
    start = [initial_hyperparameters(2)]
    known = features[kept], scores[kept], kernel
    parameters = fit_hyperparameters(*known, start, evaluations=12)
    assert task is not None
    assert task.hyperparameters == pytest.approx(parameters)
    assert task.scores(features) == pytest.approx(
        gp_posterior(*known, parameters).predict(features)[0]
    )


def test_score_is_the_normal_quantile_in_the_middle_of_the_equal_ranks() -> None:
    found = normal_scores(np.array([1.0, 2.0, 1.0, 1.0]))

    tied, last = NormalDist().inv_cdf(1.5 / 4), NormalDist().inv_cdf(3.5 / 4)
    assert found == pytest.approx([tied, last, tied, tied])
