"""Matern correlations against their closed forms and against each other."""

import math

import numpy as np
import pytest

from nni.hpo.models.matern import Matern

DISTANCES = np.array([1e-5, 0.01, 0.3, 1.0, 2.5, 6.0])


def closed_seven_halves(r: float) -> float:
    z = math.sqrt(7) * r
    return (1 + z + 2 * z**2 / 5 + z**3 / 15) * math.exp(-z)


def test_table_agrees_with_a_closed_form_that_it_does_not_know() -> None:
    values, _ = Matern.of(3.5).correlation(DISTANCES**2)

    assert values == pytest.approx([closed_seven_halves(r) for r in DISTANCES], abs=1e-6)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_table_continues_the_closed_forms(nu: float) -> None:
    closed = Matern.of(nu).correlation(DISTANCES[1:] ** 2)
    table = Matern.of(nu + 1e-6).correlation(DISTANCES[1:] ** 2)

    for left, right in zip(closed, table, strict=True):
        assert left == pytest.approx(right, rel=1e-3)


@pytest.mark.parametrize("nu", [0.5, 0.8, 1.5, 2.0, 2.5, 4.0, math.inf])
def test_steepness_is_the_slope_over_the_distance(nu: float) -> None:
    kernel, r, step = Matern.of(nu), DISTANCES[1:], 1e-3
    above, _ = kernel.correlation((r + step) ** 2)
    below, _ = kernel.correlation((r - step) ** 2)
    _, steepness = kernel.correlation(r**2)

    # Central differences: the error is step^2 / 6 times a third derivative of order 10.
    assert steepness * r == pytest.approx((below - above) / (2 * step), rel=0.02, abs=1e-4)


@pytest.mark.parametrize("nu", [0.3, 0.5, 1.5, 1.7, 2.5, 50.0])
def test_correlation_is_one_at_no_distance_and_falls(nu: float) -> None:
    values, steepness = Matern.of(nu).correlation(np.concatenate([[0.0], DISTANCES**2, [1e6]]))

    assert values[0] == pytest.approx(1.0, abs=0.02)  # 0.3 is rough: 1 - r^0.6 near 0
    assert (np.diff(values) <= 0).all()
    assert np.isfinite(steepness).all()
    assert values[-1] < 1e-10


@pytest.mark.parametrize("nu", [0, -1, math.nan])
def test_smoothness_must_be_positive(nu: float) -> None:
    with pytest.raises(ValueError, match="nu must be > 0"):
        Matern.of(nu)


def test_closed_forms_are_exact() -> None:
    r = DISTANCES[1:]
    three, five = np.sqrt(3) * r, np.sqrt(5) * r

    found = [Matern.of(nu).correlation(r**2)[0] for nu in (0.5, 1.5, 2.5)]

    assert found[0] == pytest.approx(np.exp(-r), rel=1e-12)
    assert found[1] == pytest.approx((1 + three) * np.exp(-three), rel=1e-12)
    assert found[2] == pytest.approx((1 + five + five**2 / 3) * np.exp(-five), rel=1e-12)


@pytest.mark.parametrize(("nu", "exponential"), [(30, False), (31, True), (math.inf, True)])
def test_smoothness_beyond_thirty_is_the_squared_exponential(nu: float, exponential: bool) -> None:
    (found,), _ = Matern.of(nu).correlation(np.array([1.0]))

    away = abs(float(found) - math.exp(-0.5))
    assert (away < 1e-9) is exponential
    assert away < 0.01
