"""Prior of hyperparameters against plain formulas and finite differences."""

import math

import numpy as np
import pytest

from nni.hpo.models.gp_prior import initial_lengthscales_and_noise, lengthscale_and_noise_prior


def test_expected_lengthscales_grow_with_the_root_of_the_number_of_axes() -> None:
    few, many = initial_lengthscales_and_noise(1), initial_lengthscales_and_noise(9)

    assert many.shape == (10,)
    assert many[0] - few[0] == pytest.approx(math.log(3))
    assert many[-1] == few[-1]


def test_lengthscales_of_one_axis_are_half_the_unit_interval() -> None:
    prior = lengthscale_and_noise_prior(1)

    assert np.exp(prior.mean) == pytest.approx([0.5, 1e-6])
    assert prior.deviation == pytest.approx([math.sqrt(3), 3.0])
    assert np.exp(prior.bounds[0]) == pytest.approx([5e-3, 1e-9])
    assert np.exp(prior.bounds[1]) == pytest.approx([1e3, 1.0])


def test_penalty_is_least_at_the_mean_and_its_gradient_agrees_with_differences() -> None:
    prior = lengthscale_and_noise_prior(2)
    at, step = prior.mean + np.array([0.3, -0.7, 1.1]), 1e-5 * np.eye(3)

    _, gradient = prior.penalty(at)

    assert prior.penalty(prior.mean)[0] == 0
    differences = [(prior.penalty(at + s)[0] - prior.penalty(at - s)[0]) / 2e-5 for s in step]
    assert gradient == pytest.approx(differences, rel=1e-6)


def test_penalty_is_the_negative_log_density_of_normal_distributions() -> None:
    prior = lengthscale_and_noise_prior(2)
    at = prior.mean + np.array([0.3, -0.7, 1.1])

    value, _ = prior.penalty(at)

    assert value == pytest.approx(0.5 * (0.3**2 / 3 + 0.7**2 / 3 + 1.1**2 / 9))


def test_one_more_parameter_is_the_last_and_changes_no_other() -> None:
    prior = lengthscale_and_noise_prior(2)

    longer = prior.with_parameter(1.0, 2.0, (-7.0, 6.0))

    assert longer.mean.tolist() == [*prior.mean, 1.0]
    assert longer.deviation.tolist() == [*prior.deviation, 2.0]
    assert [bound.tolist() for bound in longer.bounds] == [
        [*prior.bounds[0], -7.0],
        [*prior.bounds[1], 6.0],
    ]
