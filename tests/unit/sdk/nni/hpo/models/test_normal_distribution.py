"""Standard normal distribution against the standard library and against series in the tails."""

import math
from statistics import NormalDist

import numpy as np
import pytest

from nni.hpo.models.normal_distribution import (
    approximate_normal_cdf,
    log_normal_cdf,
    log_normal_density,
    log_unit_improvement,
    normal_cdf,
)

NORMAL = NormalDist()


def test_normal_distribution_function() -> None:
    z = np.array([-40.0, -3.0, 0.0, 1.5, 40.0])

    assert normal_cdf(z) == pytest.approx([NORMAL.cdf(one) for one in z], rel=1e-9)


def test_approximation_is_as_close_as_documented() -> None:
    z = np.linspace(-6, 6, 1001)

    exact = [NORMAL.cdf(value) for value in z.tolist()]

    assert approximate_normal_cdf(z) == pytest.approx(exact, abs=1.5e-7)


def test_log_density_is_that_of_the_density() -> None:
    z = np.array([-3.0, 0.0, 1.5])

    assert np.exp(log_normal_density(z)) == pytest.approx([NORMAL.pdf(one) for one in z])


def test_logarithms_agree_with_plain_formulas_where_these_do_not_underflow() -> None:
    z = np.array([-7.9, -3.0, 0.0, 1.5, 6.0])
    cdf = np.array([0.5 * math.erfc(-one / math.sqrt(2)) for one in z])
    pdf = np.array([NORMAL.pdf(one) for one in z])

    assert log_normal_cdf(z) == pytest.approx(np.log(cdf), rel=1e-7, abs=1e-15)
    assert log_unit_improvement(z) == pytest.approx(np.log(pdf + z * cdf), rel=1e-4)


@pytest.mark.parametrize("function", [log_normal_cdf, log_unit_improvement])
def test_logarithms_are_continuous_where_the_series_begins(function: object) -> None:
    below, above = function(np.array([-8.0 - 1e-9, -8.0 + 1e-9]))  # type: ignore[operator] # a function

    # The series is cut off after terms of 15 / 8**6.
    assert below == pytest.approx(above, abs=2e-3)


def test_logarithms_are_finite_where_values_underflow() -> None:
    z = np.array([-100.0, -1000.0])

    # Mills' ratio: Phi(z) = phi(z) / |z|, and phi + z Phi = phi / z**2, to first order.
    density = log_normal_density(z)
    assert log_normal_cdf(z) == pytest.approx(density - np.log(-z), abs=1e-3)
    assert log_unit_improvement(z) == pytest.approx(density - 2 * np.log(-z), abs=1e-3)


@pytest.mark.parametrize("z", [-9.0, -12.0, -20.0])
def test_series_of_the_tails_are_as_exact_as_their_next_term(z: float) -> None:
    x = -z
    cdf = math.erfc(x / math.sqrt(2)) / 2
    density = NORMAL.pdf(z)
    mills = cdf * x / density
    gain = log_unit_improvement(np.array([z]))[0] - log_normal_density(np.array([z]))[0]

    # Phi(z) = phi(z) / x * (1 - 1 / x^2 + 3 / x^4 - 15 / x^6 ...); phi + z Phi = phi / x^2 *
    # (1 - 3 / x^2 + 15 / x^4 - 105 / x^6 ...)
    assert log_normal_cdf(np.array([z]))[0] == pytest.approx(math.log(cdf), abs=20 / x**6)
    assert mills == pytest.approx(1 - 1 / x**2 + 3 / x**4, abs=20 / x**6)
    series = 1 - 3 / x**2 + 15 / x**4 - 105 / x**6
    assert gain + 2 * math.log(x) == pytest.approx(math.log(series), abs=130 / x**6)
