"""Gaussian process regression against textbook formulas and finite differences."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.gaussian_process import (
    default_parameters,
    fitted_parameters,
    posterior,
    representatives,
)
from nni.hpo.models.matern import Matern

KERNEL = Matern.of(2.5)


def data(count: int = 40, seed: int = 0) -> tuple[Floats, Floats]:
    """Make results that depend on the first of two coordinates only."""
    points = np.random.default_rng(seed).random((count, 2))
    targets = np.sin(9 * points[:, 0])
    return points, (targets - targets.mean()) / targets.std()


def slow_prediction(points: Floats, targets: Floats, parameters: Floats, at: Floats) -> float:
    lengths = np.exp(parameters[:-1])

    def k(left: Floats, right: Floats) -> float:
        r = np.sqrt((((left - right) / lengths) ** 2).sum())
        return float((1 + np.sqrt(5) * r + 5 * r * r / 3) * np.exp(-np.sqrt(5) * r))

    matrix = np.array([[k(a, b) for b in points] for a in points])
    matrix += (1e-6 + 1e-8 + np.exp(parameters[-1])) * np.eye(len(points))
    return float(np.array([k(at, b) for b in points]) @ np.linalg.solve(matrix, targets))


def test_prediction_agrees_with_the_slow_formula() -> None:
    points, targets = data(12)
    parameters = np.log([0.3, 0.8, 1e-3])
    model = posterior(points, targets, KERNEL, 1e-6, parameters)
    at = np.array([[0.2, 0.9], [0.5, 0.1]])

    means, _ = model.predict(at)

    expected = [slow_prediction(points, targets, parameters, one) for one in at]
    assert means == pytest.approx(expected, rel=1e-6)


def test_observations_are_certain_and_far_points_are_not() -> None:
    points, targets = data(12)
    model = posterior(points, targets, KERNEL, 0.0, np.log([0.3, 0.3, 1e-9]))

    means, deviations = model.predict(np.vstack([points, [[50.0, 50.0]]]))

    assert means[:-1] == pytest.approx(targets, abs=1e-3)
    assert deviations[:-1].max() < 0.01 * deviations[-1]
    assert means[-1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("nu", [1.5, 2.0, 2.5])
def test_gradients_are_those_of_the_prediction(nu: float) -> None:
    points, targets = data(15)
    model = posterior(points, targets, Matern.of(nu), 1e-6, np.log([0.3, 0.6, 1e-3]))
    at, step = np.array([0.41, 0.63]), 2e-3

    mean, deviation, mean_rise, deviation_rise = model.slopes(at)

    assert (mean, deviation) == pytest.approx([float(v[0]) for v in model.predict(at[None, :])])
    for axis in range(2):
        shift = step * np.eye(2)[axis]
        up, down = model.predict((at + shift)[None, :]), model.predict((at - shift)[None, :])
        assert mean_rise[axis] == pytest.approx((up[0][0] - down[0][0]) / (2 * step), rel=0.02)
        assert deviation_rise[axis] == pytest.approx((up[1][0] - down[1][0]) / (2 * step), rel=0.02)


def test_left_out_predictions_are_those_without_the_observation() -> None:
    points, targets = data(10)
    parameters = np.log([0.3, 0.8, 1e-2])
    means, deviations = posterior(points, targets, KERNEL, 1e-6, parameters).left_out(targets)

    rest = posterior(points[1:], targets[1:], KERNEL, 1e-6, parameters)

    assert means[0] == pytest.approx(rest.predict(points[:1])[0][0], rel=1e-6)
    assert deviations[0] > 0


def test_axis_without_influence_gets_the_greater_length() -> None:
    points, targets = data()

    fitted = fitted_parameters(
        points, targets, KERNEL, 1e-6, [default_parameters(2)], evaluations=60
    )

    assert fitted[1] > fitted[0] + 1


def test_noise_is_told_from_structure() -> None:
    points, targets = data(60)
    noisy = targets + 0.5 * np.random.default_rng(1).standard_normal(60)
    start = [default_parameters(2)]

    clean = fitted_parameters(points, targets, KERNEL, 1e-6, start, evaluations=60)
    rough = fitted_parameters(points, noisy, KERNEL, 1e-6, start, evaluations=60)

    assert rough[-1] > clean[-1] + 2


def test_equal_points_can_be_factorised() -> None:
    points, targets = np.full((30, 2), 0.5), np.zeros(30)

    means, deviations = posterior(points, targets, KERNEL, 0.0, np.log([1e3, 1e3, 1e-9])).predict(
        points[:1]
    )

    assert np.isfinite([means, deviations]).all()


def test_representatives_hold_the_best_and_reach_the_worst() -> None:
    losses = np.random.default_rng(0).random(1000)

    kept = representatives(losses, 100)

    assert len(set(kept.tolist())) == 100
    assert set(np.argsort(losses)[:50]) <= set(kept)
    assert int(np.argmax(losses)) in kept
    assert representatives(losses[:100], 100).tolist() == list(range(100))
