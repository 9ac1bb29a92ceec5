"""Acquisition functions against slow, obvious versions."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from nni.hpo.tuners.bayesian.acquisition import (
    AcquisitionFunction,
    confidence_bound,
    expected_improvement,
    posterior_deviation,
    probability_of_improvement,
)

MEANS = np.array([0.3, -0.5, 2.0, 0.0])
DEVIATIONS = np.array([0.5, 0.2, 0.7, 1.0])
INCUMBENT = -0.2
ALL = [
    expected_improvement(0.0),
    expected_improvement(0.1),
    probability_of_improvement(0.0),
    probability_of_improvement(0.3),
    confidence_bound(5.0),
    posterior_deviation,
]


def test_expected_improvement_is_the_mean_gain() -> None:
    values, _, _ = expected_improvement(0.1)(MEANS, DEVIATIONS, INCUMBENT)
    draws = np.random.default_rng(0).standard_normal(400_000)

    for value, mean, deviation in zip(values, MEANS, DEVIATIONS, strict=True):
        gains = np.maximum(INCUMBENT - 0.1 - (mean + deviation * draws), 0)
        error = 4 * gains.std() / math.sqrt(len(draws))
        assert math.exp(value) == pytest.approx(gains.mean(), abs=error)


def test_probability_of_improvement_is_a_normal_tail() -> None:
    values, _, _ = probability_of_improvement(0.1)(MEANS, DEVIATIONS, INCUMBENT)

    expected = [
        NormalDist(m, s).cdf(INCUMBENT - 0.1) for m, s in zip(MEANS, DEVIATIONS, strict=True)
    ]
    assert np.exp(values) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("acquisition", ALL)
@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_derivatives_are_those_of_the_value(acquisition: AcquisitionFunction, shift: float) -> None:
    means, step = MEANS + shift, 1e-6
    _, by_mean, by_deviation = acquisition(means, DEVIATIONS, INCUMBENT)

    up, down = (acquisition(means + s, DEVIATIONS, INCUMBENT)[0] for s in (step, -step))
    assert by_mean == pytest.approx((up - down) / (2 * step), rel=2e-3, abs=1e-5)
    up, down = (acquisition(means, DEVIATIONS + s, INCUMBENT)[0] for s in (step, -step))
    assert by_deviation == pytest.approx((up - down) / (2 * step), rel=2e-3, abs=1e-5)


@pytest.mark.parametrize("acquisition", ALL[:4])
def test_logarithm_goes_on_where_the_value_underflows(acquisition: AcquisitionFunction) -> None:
    means = np.linspace(5, 100, 400)
    values, by_mean, _ = acquisition(means, np.full(400, 0.5), 0.0)

    assert np.isfinite(values).all()
    assert (np.diff(values) < 0).all()
    assert (by_mean < 0).all()
