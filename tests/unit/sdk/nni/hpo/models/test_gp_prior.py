"""What processes expect before observations, against plain formulas and finite differences."""

import math

import numpy as np
import pytest

from nni.hpo.models.gp_prior import (
    conditioned,
    first_lengths_and_noise,
    implausibility,
    lengths_and_noise_prior,
)


def test_expected_lengths_grow_with_the_root_of_the_number_of_axes() -> None:
    few, many = first_lengths_and_noise(1), first_lengths_and_noise(9)

    assert many.shape == (10,)
    assert many[0] - few[0] == pytest.approx(math.log(3))
    assert many[-1] == few[-1]


def test_penalty_is_least_at_the_centre_and_its_gradient_agrees_with_differences() -> None:
    prior = lengths_and_noise_prior(2)
    at, step = prior.centre + np.array([0.3, -0.7, 1.1]), 1e-5 * np.eye(3)

    _, gradient = prior.penalty(at)

    assert prior.penalty(prior.centre)[0] == 0
    differences = [(prior.penalty(at + s)[0] - prior.penalty(at - s)[0]) / 2e-5 for s in step]
    assert gradient == pytest.approx(differences, rel=1e-6)


def test_one_more_parameter_is_the_last_and_changes_no_other() -> None:
    prior = lengths_and_noise_prior(2)

    longer = prior.joined_by(1.0, 2.0, (-7.0, 6.0))

    assert longer.centre.tolist() == [*prior.centre, 1.0]
    assert longer.spread.tolist() == [*prior.spread, 2.0]
    assert [bound.tolist() for bound in longer.bounds] == [
        [*prior.bounds[0], -7.0],
        [*prior.bounds[1], 6.0],
    ]


def test_change_of_the_implausibility_agrees_with_differences() -> None:
    rng = np.random.default_rng(0)
    targets = rng.standard_normal(6)
    inner = rng.standard_normal((6, 6))
    matrix, direction = np.eye(6) + 0.1 * inner @ inner.T, inner + inner.T

    values = [
        implausibility(matrix + step * direction, targets, 0.25) for step in (-1e-6, 0.0, 1e-6)
    ]

    below, here, above = values
    assert below is not None
    assert here is not None
    assert above is not None
    slope = 0.5 * float((here[1] * direction).sum())
    assert slope == pytest.approx((above[0] - below[0]) / 2e-6, rel=1e-5)


def test_penalty_is_part_of_the_implausibility() -> None:
    targets = np.array([1.0, -1.0])

    with_it, without = (implausibility(np.eye(2), targets, penalty) for penalty in (2.5, 0.0))

    assert with_it is not None
    assert without is not None
    assert with_it[0] - without[0] == pytest.approx(2.5)


def test_matrix_that_is_no_correlation_says_nothing() -> None:
    assert implausibility(np.array([[1.0, 2.0], [2.0, 1.0]]), np.array([1.0, -1.0]), 0.0) is None


def test_conditioned_solves_for_the_targets() -> None:
    correlation = np.array([[1.0, 0.3], [0.3, 1.0]])
    targets = np.array([1.0, -1.0])

    weights, precision, root, variance = conditioned(correlation, 0.1, targets)

    noisy = correlation + 0.1 * np.eye(2)
    assert noisy @ weights == pytest.approx(targets)
    assert precision @ noisy == pytest.approx(np.eye(2))
    assert root.T @ root == pytest.approx(precision)
    # Inverse gamma with shape and rate 1/2: (y' K^-1 y + 1) / (n + 1).
    assert variance == pytest.approx((targets @ np.linalg.solve(noisy, targets) + 1) / 3)


def test_noise_grows_until_the_matrix_can_be_factorised() -> None:
    correlation = np.ones((4, 4)) - 1e-6 * np.eye(4)[::-1]

    weights, *_ = conditioned(correlation, 1e-12, np.array([1.0, 0.5, -0.5, -1.0]))

    assert np.isfinite(weights).all()
