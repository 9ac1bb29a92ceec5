"""Blended Gaussian process regression against the plain formula and finite differences."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models import gp_regression as module
from nni.hpo.models.gp_regression import (
    Blend,
    BlendedProcess,
    blended_process,
    default_parameters,
    fitted_parameters,
)
from nni.hpo.models.lbfgs import Differentiable
from nni.hpo.models.matern import Matern

OWNERS = np.array([0, 1, 2, 2])
"""Two numbers and a choice of two options."""
BLEND = Blend(OWNERS, Matern.of(2.5))


def data(count: int, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    points = rng.random((count, 4))
    points[:, 2:] = np.sqrt(0.5) * np.eye(2)[rng.integers(2, size=count)]
    targets = np.sin(5 * points[:, 0]) + points[:, 1] * points[:, 2]
    return points, (targets - targets.mean()) / targets.std()


def correlation(left: Floats, right: Floats, lengths: Floats, blend: float) -> float:
    def matern(squared: float) -> float:
        r = np.sqrt(5 * squared)
        return float((1 + r + r * r / 3) * np.exp(-r))

    squares = ((left - right) / lengths[OWNERS]) ** 2
    by_axis = [squares[axis == OWNERS].sum() for axis in range(3)]
    alone = np.mean([matern(3 * one) for one in by_axis])
    return float(blend * alone + (1 - blend) * matern(sum(by_axis)))


def process(count: int = 12, blend: Blend = BLEND) -> tuple[BlendedProcess, Floats, Floats, Floats]:
    points, targets = data(count)
    parameters = np.array([np.log(0.3), np.log(0.8), np.log(0.5), np.log(1e-3), 0.4])
    return blended_process(points, targets, blend, parameters), points, targets, parameters


def test_prediction_agrees_with_the_slow_formula() -> None:
    model, points, targets, parameters = process()
    lengths, blend = np.exp(parameters[:3]), 1 / (1 + np.exp(-0.4))
    at, _ = data(2, seed=1)

    means, _ = model.predict(at)

    matrix = np.array([[correlation(a, b, lengths, blend) for b in points] for a in points])
    matrix += (1e-3 + 1e-6) * np.eye(12)
    weights = np.linalg.solve(matrix, targets)
    expected = [
        sum(w * correlation(x, p, lengths, blend) for w, p in zip(weights, points, strict=True))
        for x in at
    ]
    assert means == pytest.approx(expected, rel=1e-6)


def test_many_points_are_predicted_as_one_by_one() -> None:
    model, *_ = process()
    at, _ = data(300, seed=2)

    together = model.predict(at)

    assert together[0][255:] == pytest.approx([model.predict(x[None])[0][0] for x in at[255:]])
    assert together[1][255:] == pytest.approx([model.predict(x[None])[1][0] for x in at[255:]])


@pytest.mark.parametrize("nu", [1.5, 2.5])
@pytest.mark.parametrize("column", [0, 1])
def test_slopes_agree_with_differences(column: int, nu: float) -> None:
    model, points, *_ = process(blend=Blend(OWNERS, Matern.of(nu)))
    point, step = points[3] + 0.03, 1e-5 * np.eye(4)[column]

    mean, deviation, mean_rise, deviation_rise = model.slopes(point)

    (means, deviations) = model.predict(np.stack([point, point + step, point - step]))
    assert (mean, deviation) == pytest.approx((means[0], deviations[0]), rel=1e-6)
    assert mean_rise[column] == pytest.approx((means[1] - means[2]) / 2e-5, rel=1e-4)
    assert deviation_rise[column] == pytest.approx((deviations[1] - deviations[2]) / 2e-5, rel=1e-3)


@pytest.mark.parametrize("blend", [BLEND, Blend(OWNERS, Matern.of(1.5), alpha=0.01)])
def test_gradient_of_the_posterior_agrees_with_differences(
    blend: Blend, monkeypatch: pytest.MonkeyPatch
) -> None:
    functions: list[Differentiable] = []

    def keep(
        function: Differentiable, start: Floats, *_: Floats, **__: float
    ) -> tuple[Floats, float]:
        functions.append(function)
        return start, 0.0

    monkeypatch.setattr(module, "minimise", keep)
    points, targets = data(20)
    at = default_parameters(3) + np.array([0.3, -0.2, 0.1, 2.0, 0.5])
    fitted_parameters(points, targets, blend, [at], evaluations=1)
    (function,) = functions

    _, gradient = function(at)

    steps = 1e-5 * np.eye(5)
    differences = [(function(at + s)[0] - function(at - s)[0]) / 2e-5 for s in steps]
    assert gradient == pytest.approx(differences, rel=1e-4)


def test_effects_of_single_axes_are_told_from_their_interplay() -> None:
    points = np.random.default_rng(0).random((60, 4))
    blend = Blend(np.arange(4), Matern.of(2.5))
    alone = np.sin(9 * points).sum(axis=1)
    joint = np.sin(4 * points.sum(axis=1))

    blends = [
        fitted_parameters(
            points, (y - y.mean()) / y.std(), blend, [default_parameters(4)], evaluations=40
        )[-1]
        for y in (alone, joint)
    ]

    assert blends[0] > 2.5
    assert blends[1] < 0


def test_equal_points_with_different_results_are_no_error() -> None:
    points = np.full((6, 4), 0.5)

    model = blended_process(points, np.arange(6.0) - 2.5, BLEND, default_parameters(3))

    assert model.predict(points[:1])[0] == pytest.approx([0.0], abs=1e-3)


def test_results_bind_less_with_a_greater_least_noise() -> None:
    points, targets = data(12)
    parameters = default_parameters(3)

    near, loose = (
        blended_process(points, targets, Blend(OWNERS, Matern.of(2.5), alpha), parameters)
        for alpha in (0.0, 0.5)
    )

    best = points[targets.argmin()][None]
    assert near.predict(best)[0] == pytest.approx(targets.min(), abs=0.01)
    assert loose.predict(best)[0] > targets.min() + 0.1
