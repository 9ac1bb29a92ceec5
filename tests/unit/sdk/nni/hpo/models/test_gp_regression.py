"""Partly additive Gaussian process regression against the plain formula and finite differences."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.gp_algebra import negative_log_posterior
from nni.hpo.models.gp_regression import (
    GPPosterior,
    Kernel,
    fit_hyperparameters,
    fit_objective,
    gp_posterior,
    hyperparameter_prior,
    initial_hyperparameters,
)
from nni.hpo.models.matern import Matern

AXES = np.array([0, 1, 2, 2])
"""Two numbers and a choice of two options."""
KERNEL = Kernel(AXES, Matern.of(2.5))


def data(count: int, seed: int = 0) -> tuple[Floats, Floats]:
    rng = np.random.default_rng(seed)
    points = rng.random((count, 4))
    points[:, 2:] = np.sqrt(0.5) * np.eye(2)[rng.integers(2, size=count)]
    targets = np.sin(5 * points[:, 0]) + points[:, 1] * points[:, 2]
    return points, (targets - targets.mean()) / targets.std()


def correlation(left: Floats, right: Floats, lengthscales: Floats, share: float) -> float:
    def matern(squared: float) -> float:
        r = np.sqrt(5 * squared)
        return float((1 + r + r * r / 3) * np.exp(-r))

    squares = ((left - right) / lengthscales[AXES]) ** 2
    by_axis = [squares[axis == AXES].sum() for axis in range(3)]
    alone = np.mean([matern(3 * one) for one in by_axis])
    return float(share * alone + (1 - share) * matern(sum(by_axis)))


def process(count: int = 12, kernel: Kernel = KERNEL) -> tuple[GPPosterior, Floats, Floats, Floats]:
    points, targets = data(count)
    parameters = np.array([np.log(0.3), np.log(0.8), np.log(0.5), np.log(1e-3), 0.4])
    return gp_posterior(points, targets, kernel, parameters), points, targets, parameters


def test_prediction_agrees_with_the_slow_formula() -> None:
    model, points, targets, parameters = process()
    lengthscales, share = np.exp(parameters[:3]), 1 / (1 + np.exp(-0.4))
    at, _ = data(2, seed=1)

    means, _ = model.predict(at)

    matrix = np.array([[correlation(a, b, lengthscales, share) for b in points] for a in points])
    matrix += (1e-3 + 1e-6) * np.eye(12)
    weights = np.linalg.solve(matrix, targets)
    expected = [
        sum(
            w * correlation(x, p, lengthscales, share) for w, p in zip(weights, points, strict=True)
        )
        for x in at
    ]
    assert means == pytest.approx(expected, rel=1e-6)


def test_many_inputs_are_predicted_as_one_by_one() -> None:
    model, *_ = process()
    at, _ = data(300, seed=2)

    together = model.predict(at)

    assert together[0][255:] == pytest.approx([model.predict(x[None])[0][0] for x in at[255:]])
    assert together[1][255:] == pytest.approx([model.predict(x[None])[1][0] for x in at[255:]])


@pytest.mark.parametrize("nu", [1.5, 2.5])
@pytest.mark.parametrize("column", [0, 1])
def test_gradients_agree_with_differences(column: int, nu: float) -> None:
    model, points, *_ = process(kernel=Kernel(AXES, Matern.of(nu)))
    point, step = points[3] + 0.03, 1e-5 * np.eye(4)[column]

    mean, deviation, mean_gradient, deviation_gradient = model.predict_with_gradient(point)

    (means, deviations) = model.predict(np.stack([point, point + step, point - step]))
    assert (mean, deviation) == pytest.approx((means[0], deviations[0]), rel=1e-6)
    assert mean_gradient[column] == pytest.approx((means[1] - means[2]) / 2e-5, rel=1e-4)
    assert deviation_gradient[column] == pytest.approx(
        (deviations[1] - deviations[2]) / 2e-5, rel=1e-3
    )


@pytest.mark.parametrize("kernel", [KERNEL, Kernel(AXES, Matern.of(1.5), least_noise=0.01)])
def test_gradient_of_the_fit_agrees_with_differences(kernel: Kernel) -> None:
    inputs, targets = data(20)
    at = initial_hyperparameters(3) + np.array([0.3, -0.2, 0.1, 2.0, 0.5])
    objective = fit_objective(inputs, targets, kernel)

    _, gradient = objective(at)

    steps = 1e-5 * np.eye(5)
    differences = [(objective(at + s)[0] - objective(at - s)[0]) / 2e-5 for s in steps]
    assert gradient == pytest.approx(differences, rel=1e-4)


def test_fit_minimises_the_density_of_the_slow_matrix() -> None:
    inputs, targets = data(8)
    at = initial_hyperparameters(3) + np.array([0.3, -0.2, 0.1, 2.0, 0.5])
    lengthscales, share = np.exp(at[:3]), 1 / (1 + np.exp(-at[-1]))

    value, _ = fit_objective(inputs, targets, KERNEL)(at)

    matrix = np.array([[correlation(a, b, lengthscales, share) for b in inputs] for a in inputs])
    matrix += (np.exp(at[3]) + 1e-6) * np.eye(8)
    penalty, _ = hyperparameter_prior(3).penalty(at)
    expected = negative_log_posterior(matrix, targets, penalty)
    assert expected is not None
    assert value == pytest.approx(expected[0])


def test_the_best_of_several_starts_is_taken() -> None:
    inputs, targets = data(20)
    good = fit_hyperparameters(
        inputs, targets, KERNEL, [initial_hyperparameters(3)], evaluations=60
    )
    poor = hyperparameter_prior(3).bounds[1]

    found = fit_hyperparameters(inputs, targets, KERNEL, [poor, good], evaluations=1)

    assert found.tolist() == good.tolist()


def test_effects_of_single_axes_differ_from_interactions_in_the_additive_share() -> None:
    points = np.random.default_rng(0).random((60, 4))
    kernel = Kernel(np.arange(4), Matern.of(2.5))
    alone = np.sin(9 * points).sum(axis=1)
    joint = np.sin(4 * points.sum(axis=1))

    logits = [
        fit_hyperparameters(
            points, (y - y.mean()) / y.std(), kernel, [initial_hyperparameters(4)], evaluations=40
        )[-1]
        for y in (alone, joint)
    ]

    assert logits[0] > 2.5
    assert logits[1] < 0


def test_equal_inputs_with_different_results_are_no_error() -> None:
    points = np.full((6, 4), 0.5)

    model = gp_posterior(points, np.arange(6.0) - 2.5, KERNEL, initial_hyperparameters(3))

    assert model.predict(points[:1])[0] == pytest.approx([0.0], abs=1e-3)


def test_results_bind_less_with_a_greater_least_noise() -> None:
    points, targets = data(12)
    parameters = initial_hyperparameters(3)

    near, loose = (
        gp_posterior(points, targets, Kernel(AXES, Matern.of(2.5), alpha), parameters)
        for alpha in (0.0, 0.5)
    )

    best = points[targets.argmin()][None]
    assert near.predict(best)[0] == pytest.approx(targets.min(), abs=0.01)
    assert loose.predict(best)[0] > targets.min() + 0.1


def plain_data(count: int = 40, seed: int = 0) -> tuple[Floats, Floats]:
    """Make results that depend on the first of two coordinates only."""
    inputs = np.random.default_rng(seed).random((count, 2))
    targets = np.sin(9 * inputs[:, 0])
    return inputs, (targets - targets.mean()) / targets.std()


PLAIN = Kernel(np.arange(2), Matern.of(2.5))
JOINT = -7.0
"""Logit at which next to nothing is additive."""


def test_observations_are_certain_and_far_inputs_are_not() -> None:
    inputs, targets = plain_data(12)
    parameters = np.array([*np.log([0.3, 0.3, 1e-9]), JOINT])
    model = gp_posterior(inputs, targets, PLAIN, parameters)

    means, deviations = model.predict(np.vstack([inputs, [[50.0, 50.0]]]))

    assert means[:-1] == pytest.approx(targets, abs=1e-3)
    assert deviations[:-1].max() < 0.01 * deviations[-1]
    assert means[-1] == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("nu", [1.5, 2.0, 2.5])
def test_gradients_of_every_smoothness_are_those_of_the_prediction(nu: float) -> None:
    inputs, targets = plain_data(15)
    kernel = Kernel(np.arange(2), Matern.of(nu), 1e-6)
    model = gp_posterior(inputs, targets, kernel, np.array([*np.log([0.3, 0.6, 1e-3]), JOINT]))
    at, step = np.array([0.41, 0.63]), 2e-3

    mean, deviation, mean_gradient, deviation_gradient = model.predict_with_gradient(at)

    assert (mean, deviation) == pytest.approx([float(v[0]) for v in model.predict(at[None, :])])
    for axis in range(2):
        shift = step * np.eye(2)[axis]
        up, down = model.predict((at + shift)[None, :]), model.predict((at - shift)[None, :])
        by_mean, by_deviation = ((u[0] - d[0]) / (2 * step) for u, d in zip(up, down, strict=True))
        assert mean_gradient[axis] == pytest.approx(by_mean, rel=0.02)
        assert deviation_gradient[axis] == pytest.approx(by_deviation, rel=0.02)


def test_left_out_predictions_are_those_without_the_observation() -> None:
    inputs, targets = plain_data(10)
    parameters = np.array([*np.log([0.3, 0.8, 1e-2]), JOINT])
    whole = gp_posterior(inputs, targets, PLAIN, parameters)
    means, deviations = whole.gaussian.leave_one_out(targets)

    rest = gp_posterior(inputs[1:], targets[1:], PLAIN, parameters)

    assert means[0] == pytest.approx(rest.predict(inputs[:1])[0][0], rel=1e-6)
    assert deviations[0] > 0


def test_axis_without_influence_gets_the_greater_lengthscale() -> None:
    inputs, targets = plain_data()

    fitted = fit_hyperparameters(
        inputs, targets, PLAIN, [initial_hyperparameters(2)], evaluations=60
    )

    assert fitted[1] > fitted[0] + 1


def test_noise_differs_from_structure_in_the_noise_variance() -> None:
    inputs, targets = plain_data(60)
    noisy = targets + 0.5 * np.random.default_rng(1).standard_normal(60)
    start = [initial_hyperparameters(2)]

    clean = fit_hyperparameters(inputs, targets, PLAIN, start, evaluations=60)
    rough = fit_hyperparameters(inputs, noisy, PLAIN, start, evaluations=60)

    assert rough[2] > clean[2] + 2


def test_equal_inputs_can_be_factorised() -> None:
    inputs, targets = np.full((30, 2), 0.5), np.zeros(30)
    parameters = np.array([*np.log([1e3, 1e3, 1e-9]), JOINT])

    means, deviations = gp_posterior(inputs, targets, PLAIN, parameters).predict(inputs[:1])

    assert np.isfinite([means, deviations]).all()


def test_no_prediction_is_more_certain_than_the_least_variance() -> None:
    inputs, targets = plain_data(12)
    parameters = np.array([*np.log([0.3, 0.3, 1e-9]), JOINT])
    kernel = Kernel(np.arange(2), Matern.of(2.5), least_variance=0.04)

    posterior = gp_posterior(inputs, targets, kernel, parameters)

    _, deviations = posterior.predict(inputs)
    scale = posterior.gaussian.output_scale
    assert deviations == pytest.approx(np.full(12, 0.2 * np.sqrt(scale)))


def test_additive_share_is_expected_above_a_half() -> None:
    prior = hyperparameter_prior(2)

    assert (prior.mean[-1], prior.deviation[-1]) == (1.0, 2.0)
    assert [float(bound[-1]) for bound in prior.bounds] == [-7.0, 7.0]
    assert initial_hyperparameters(2)[-1] == 1.0
