"""Algebra of Gaussian process regression against textbook formulas and finite differences."""

import math

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.gp_algebra import condition, negative_log_posterior

TARGETS = np.array([1.0, 0.5, -0.5, -1.0])


def correlations(left: Floats, right: Floats) -> Floats:
    """Return squared exponential correlations of places on a line."""
    found: Floats = np.exp(-((left[:, None] - right[None, :]) ** 2))
    return found


PLACES = np.array([0.0, 0.7, 1.5, 2.6])
CORRELATION = correlations(PLACES, PLACES)


def test_gradient_by_the_matrix_agrees_with_differences() -> None:
    rng = np.random.default_rng(0)
    targets = rng.standard_normal(6)
    inner = rng.standard_normal((6, 6))
    matrix, direction = np.eye(6) + 0.1 * inner @ inner.T, inner + inner.T

    values = [
        negative_log_posterior(matrix + step * direction, targets, 0.25)
        for step in (-1e-6, 0.0, 1e-6)
    ]

    below, here, above = values
    assert below is not None
    assert here is not None
    assert above is not None
    slope = 0.5 * float((here[1] * direction).sum())
    assert slope == pytest.approx((above[0] - below[0]) / 2e-6, rel=1e-5)


def test_value_is_the_marginal_likelihood_with_the_best_output_scale() -> None:
    # Density of targets ~ N(0, s K) times the inverse gamma density (1/2, 1/2) of s, at its mode;
    # what does not depend on K is left out by taking a difference.
    def slow(matrix: Floats) -> float:
        fit = float(TARGETS @ np.linalg.solve(matrix, TARGETS))
        scale = (fit + 1) / (len(TARGETS) + 1)
        log_density = -0.5 * len(TARGETS) * math.log(scale) - 0.5 * math.log(np.linalg.det(matrix))
        log_density -= 0.5 * fit / scale
        return -(log_density - 0.5 * math.log(scale) - 0.5 / scale)

    left, right = CORRELATION + 0.1 * np.eye(4), CORRELATION + 0.4 * np.eye(4)

    found = [negative_log_posterior(matrix, TARGETS, 0.0) for matrix in (left, right)]

    assert found[0] is not None
    assert found[1] is not None
    assert found[0][0] - found[1][0] == pytest.approx(slow(left) - slow(right))


def test_penalty_is_part_of_the_value() -> None:
    targets = np.array([1.0, -1.0])

    with_it, without = (
        negative_log_posterior(np.eye(2), targets, penalty) for penalty in (2.5, 0.0)
    )

    assert with_it is not None
    assert without is not None
    assert with_it[0] - without[0] == pytest.approx(2.5)


def test_matrix_that_is_no_correlation_has_no_value() -> None:
    matrix = np.array([[1.0, 2.0], [2.0, 1.0]])

    assert negative_log_posterior(matrix, np.array([1.0, -1.0]), 0.0) is None


def test_conditioning_solves_for_the_targets() -> None:
    correlation = np.array([[1.0, 0.3], [0.3, 1.0]])
    targets = np.array([1.0, -1.0])

    posterior = condition(correlation, 0.1, targets, 1e-6)

    noisy = correlation + 0.1 * np.eye(2)
    assert noisy @ posterior.weights == pytest.approx(targets)
    assert posterior.precision @ noisy == pytest.approx(np.eye(2))
    assert posterior.root.T @ posterior.root == pytest.approx(posterior.precision)
    # Inverse gamma with shape and rate 1/2: (y' K^-1 y + 1) / (n + 1).
    scale = (targets @ np.linalg.solve(noisy, targets) + 1) / 3
    assert posterior.output_scale == pytest.approx(scale)


def test_noise_grows_until_the_matrix_can_be_factorised() -> None:
    correlation = np.ones((4, 4)) - 1e-6 * np.eye(4)[::-1]

    posterior = condition(correlation, 1e-12, TARGETS, 1e-6)

    assert np.isfinite(posterior.weights).all()


def test_prediction_is_that_of_the_conditional_normal_distribution() -> None:
    posterior = condition(CORRELATION, 0.05, TARGETS, 1e-6)
    cross = correlations(PLACES, np.array([0.3, 2.0]))

    means, deviations = posterior.predict(cross)

    solved = np.linalg.solve(CORRELATION + 0.05 * np.eye(4), cross)
    variances = posterior.output_scale * (1 - (cross * solved).sum(axis=0))
    assert means == pytest.approx(solved.T @ TARGETS)
    assert deviations == pytest.approx(np.sqrt(variances))


def test_no_prediction_is_more_certain_than_the_least_variance() -> None:
    posterior = condition(CORRELATION, 1e-9, TARGETS, 0.01)

    _, deviations = posterior.predict(CORRELATION)
    _, deviation, *_ = posterior.predict_with_gradient(CORRELATION[:, 0], np.zeros((4, 1)))

    assert deviations == pytest.approx(np.full(4, 0.1 * math.sqrt(posterior.output_scale)))
    assert deviation == pytest.approx(deviations[0])


def test_gradients_are_those_of_the_prediction() -> None:
    posterior = condition(CORRELATION, 0.05, TARGETS, 1e-6)
    place, step = np.array([1.1]), 1e-5
    cross = correlations(PLACES, place)[:, 0]
    slope = (2 * (PLACES - place) * cross)[:, None]

    mean, deviation, by_mean, by_deviation = posterior.predict_with_gradient(cross, slope)

    means, deviations = posterior.predict(
        correlations(PLACES, np.array([place[0], place[0] + step, place[0] - step]))
    )
    assert (mean, deviation) == pytest.approx((means[0], deviations[0]))
    assert by_mean == pytest.approx((means[1] - means[2]) / (2 * step), rel=1e-5)
    assert by_deviation == pytest.approx((deviations[1] - deviations[2]) / (2 * step), rel=1e-5)


def test_left_out_predictions_are_those_of_a_posterior_without_the_observation() -> None:
    whole = condition(CORRELATION, 0.05, TARGETS, 1e-9)

    means, deviations = whole.leave_one_out(TARGETS)

    for left_out in range(4):
        rest = np.delete(np.arange(4), left_out)
        other = condition(CORRELATION[np.ix_(rest, rest)], 0.05, TARGETS[rest], 1e-9)
        mean, deviation = other.predict(CORRELATION[rest, left_out][:, None])
        assert means[left_out] == pytest.approx(mean[0])
        # The same but for the output scale, which all observations determine; with noise.
        variance = deviation[0] ** 2 / other.output_scale + 0.05
        expected = math.sqrt(whole.output_scale * variance)
        assert deviations[left_out] == pytest.approx(expected)


@pytest.mark.parametrize(("noise", "used"), [(0.02, 0.02), (0.002, 0.02), (0.0002, 0.02)])
def test_noise_is_raised_tenfold_until_the_matrix_can_be_factorised(
    noise: float, used: float
) -> None:
    correlation = np.array([[1.0, 1.01], [1.01, 1.0]])  # as rounding leaves it, exaggerated

    posterior = condition(correlation, noise, np.array([1.0, -1.0]), 1e-6)

    noisy = np.array([[1 + used, 1.01], [1.01, 1 + used]])
    assert posterior.precision @ noisy == pytest.approx(np.eye(2), abs=1e-9)
