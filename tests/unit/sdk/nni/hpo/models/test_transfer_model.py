"""Model of own results over surrogates of earlier tasks."""

import math
from dataclasses import replace

import numpy as np
import pytest

from nni.hpo.models.earlier_tasks import EarlierTask, earlier_task
from nni.hpo.models.gp_regression import correlations, initial_hyperparameters
from nni.hpo.models.targets import standardised
from nni.hpo.models.transfer_model import (
    _HYPOTHESES,
    _SCALES,
    TransferModel,
    _log_densities,
    _WeightedTasks,
)

AXES = np.array([0, 1])
EARLIER = np.random.default_rng(0).random((40, 2))
OWN = np.random.default_rng(1).random((8, 2))


def bowl(features: np.ndarray, centre: float) -> np.ndarray:
    losses: np.ndarray = ((features - centre) ** 2).sum(axis=1)
    return losses


def tasks(*centres: float) -> list[EarlierTask]:
    found = [earlier_task(EARLIER, AXES, AXES, bowl(EARLIER, centre)) for centre in centres]
    return [task for task in found if task is not None]


def test_results_that_agree_raise_the_trust_and_those_that_contradict_lower_it() -> None:
    model = TransferModel(tasks(0.3, 0.35), AXES)

    assert model.fit(OWN, 50 * bowl(OWN, 0.32)).trust > 0.6
    assert model.fit(OWN, -bowl(OWN, 0.32)).trust < 0.1


def test_prediction_follows_the_earlier_tasks_where_own_results_are_few() -> None:
    model = TransferModel(tasks(0.3, 0.35), AXES)
    means, deviations = model.fit(OWN, bowl(OWN, 0.32)).predict(np.array([[0.32, 0.32], [1, 1]]))

    assert means[0] < means[1]
    assert (deviations > 0).all()


def test_own_results_overrule_the_earlier_tasks() -> None:
    model = TransferModel(tasks(0.2), AXES)
    own = np.random.default_rng(2).random((40, 2))
    means, _ = model.fit(own, bowl(own, 0.8)).predict(np.array([[0.2, 0.2], [0.8, 0.8]]))

    assert means[1] < means[0]


def test_task_that_agrees_is_followed() -> None:
    opposed = earlier_task(EARLIER, AXES, AXES, -bowl(EARLIER, 0.3))
    assert opposed is not None
    model = TransferModel([*tasks(0.3), opposed, opposed], AXES)
    posterior = model.fit(OWN, bowl(OWN, 0.3))
    means, _ = posterior.predict(np.array([[0.3, 0.3], [1, 1]]))

    assert means[0] < posterior.predict(OWN)[0].min()
    assert means[0] < means[1]


def test_running_trials_reduce_the_deviation_around_them() -> None:
    posterior = TransferModel(tasks(0.3), AXES).fit(OWN, bowl(OWN, 0.3))
    place = np.array([[0.05, 0.95]])

    before, after = posterior.predict(place), posterior.with_pending(place).predict(place)

    assert after[1][0] < before[1][0]
    assert abs(after[0][0] - before[0][0]) < 1e-3 + 0.1 * abs(before[0][0])


def test_densities_of_scales_are_those_of_a_normal_distribution() -> None:
    rng = np.random.default_rng(0)
    factor = np.tril(rng.random((4, 4))) + np.eye(4)
    covariance = factor @ factor.T
    targets, means = rng.standard_normal((2, 4))

    def slow(scale: float) -> float:
        """Return the log density of the targets, N(scale * means, scale^2 * covariance)."""
        away = targets - scale * means
        inside = float(away @ np.linalg.solve(scale**2 * covariance, away))
        log_determinant = math.log(np.linalg.det(scale**2 * covariance))
        return -0.5 * (inside + log_determinant + math.log(scale) ** 2)

    found = _log_densities(factor, targets, means)

    assert found == pytest.approx([slow(float(scale)) for scale in _SCALES])


def test_results_are_predicted_from_those_before_them() -> None:
    model = TransferModel(tasks(0.3), AXES)
    targets = standardised(bowl(OWN, 0.5))

    found = model._sequential_predictions(OWN, targets)

    matrix = correlations(OWN, OWN, model._kernel, model._parameters) + 0.01 * np.eye(8)
    for number in range(8):
        before = matrix[:number, :number], matrix[:number, number]
        expected = before[1] @ np.linalg.solve(before[0], targets[:number]) if number else 0.0
        assert found[number] == pytest.approx(expected)


def test_prior_variances_are_the_diagonal_of_the_covariance() -> None:
    model = TransferModel(tasks(0.3, 0.7), AXES)
    prior = _WeightedTasks(model._tasks, np.array([0.75, 0.25]), model._kernel, model._parameters)
    bases = prior.bases(OWN)

    for hypothesis in _HYPOTHESES:
        covariance = prior.covariance(hypothesis, (OWN, bases), (OWN, bases))
        assert prior.variances(hypothesis, bases) == pytest.approx(np.diag(covariance))
        noisy = prior.factor(hypothesis, OWN, bases)
        noise = hypothesis.amplitude * hypothesis.noise + 1e-8
        assert noisy @ noisy.T - covariance == pytest.approx(noise * np.eye(8), abs=1e-12)


def test_covariance_has_the_offset_and_the_differences_of_the_tasks_from_their_mean() -> None:
    model = TransferModel(tasks(0.3, 0.7), AXES)
    weights = np.array([0.75, 0.25])
    prior = _WeightedTasks(model._tasks, weights, model._kernel, model._parameters)
    bases = prior.bases(OWN)
    kernel = correlations(OWN, OWN, model._kernel, model._parameters)
    away = bases - (bases @ weights)[:, None]

    for hypothesis in _HYPOTHESES:
        expected = 10.0 + hypothesis.amplitude * kernel
        expected += hypothesis.differences * (away * weights) @ away.T
        found = prior.covariance(hypothesis, (OWN, bases), (OWN, bases))
        assert found == pytest.approx(expected)


def test_lengthscales_are_the_median_of_the_tasks_that_have_the_axis() -> None:
    def task(axes: list[int], *hyperparameters: float) -> EarlierTask:
        found = earlier_task(EARLIER, np.array(axes), AXES, bowl(EARLIER, 0.3))
        assert found is not None
        return replace(found, hyperparameters=np.array(hyperparameters))

    known = [
        task([0], 1.0, -9.0, 3.0),
        task([0], 2.0, -9.0, 4.0),
        task([0, 1], 7.0, 8.0, -9.0, 5.0),
    ]

    both = TransferModel(known, AXES)._parameters
    first = TransferModel(known[:2], AXES)._parameters

    usual = initial_hyperparameters(2)
    assert both.tolist() == [2.0, 8.0, usual[2], 4.0]
    assert first.tolist() == [1.5, usual[1], usual[2], 3.5]


def test_incumbent_is_the_least_mean_predicted_at_the_results() -> None:
    posterior = TransferModel(tasks(0.3), AXES).fit(OWN, bowl(OWN, 0.3) - 5.0)

    assert posterior.incumbent == pytest.approx(posterior.predict(OWN)[0].min())
