"""Families of growing curves."""

import numpy as np
import pytest

from nni.hpo.assessors._curve_families import FAMILIES, Curve, Family, _half_way, _limit

X = np.arange(1.0, 11.0)
EXAMPLES: dict[str, tuple[tuple[float, ...], Curve]] = {
    "vapor_pressure": ((-0.6, -0.5, 0.1), lambda x, a, b, c: np.exp(a + b / x + c * np.log(x))),
    "pow3": ((0.9, 0.5, 0.7), lambda x, c, a, alpha: c - a / x**alpha),
    "log_log_linear": ((0.4, 1.2), lambda x, a, b: np.log(a * np.log(x) + b)),
    "log_linear": ((0.2, 0.3), lambda x, a, b: b + a * np.log(x)),
    "hill3": ((0.9, 1.5, 2.0), lambda x, top, eta, k: top / (1 + (k / x) ** eta)),
    "log_power": ((0.9, 0.5, -1.2), lambda x, a, b, c: a / (1 + x**c * np.exp(-b * c))),
    "pow4": ((0.9, 2.0, 1.0, 1.1), lambda x, c, a, b, alpha: c - 1 / (a * x + b) ** alpha),
    "mmf": (
        (0.9, 0.1, 0.5, 1.5),
        lambda x, al, be, ka, de: (be + al * (ka * x) ** de) / (1 + (ka * x) ** de),
    ),
    "exp4": ((0.9, 0.5, 0.8, -0.2), lambda x, c, a, al, b: c - np.exp(b) / np.exp(a * x**al)),
    "ilog2": ((1.0, 0.5), lambda x, c, a: c - a / np.log1p(x)),
    "weibull": (
        (0.9, 0.1, 0.3, 1.2),
        lambda x, al, be, ka, de: al + (be - al) / np.exp((ka * x) ** de),
    ),
    "janoschek": (
        (0.9, 0.1, 0.3, 1.2),
        lambda x, al, be, ka, de: al + (be - al) / np.exp(ka * x**de),
    ),
}


def test_there_are_twelve() -> None:
    assert {family.name for family in FAMILIES} == EXAMPLES.keys()
    assert len(FAMILIES) == 12


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_curve_is_the_formula_written_another_way(family: Family) -> None:
    theta, formula = EXAMPLES[family.name]

    assert family.curve(X, *theta) == pytest.approx(formula(X, *theta))


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_guess_is_a_curve_at_the_height_of_the_data(family: Family) -> None:
    theta, _ = EXAMPLES[family.name]
    y = family.curve(X, *theta)

    guessed = family.curve(X, *family.guess(X, y))

    assert len(family.guess(X, y)) == len(theta)
    assert np.abs(guessed - y).max() < 0.6


@pytest.mark.parametrize(
    ("y", "x"),
    [([0, 1, 5, 8, 10], 3.0), ([0, 1, 4, 8, 10], 4.0), ([2, 2, 4, 6, 5], 3.0), ([1, 1, 1], 1.0)],
)
def test_half_of_the_rise_is_covered_at_the_first_point_that_reaches_it(
    y: list[float], x: float
) -> None:
    assert _half_way(np.arange(1.0, len(y) + 1), np.array(y, dtype=np.float64)) == x


@pytest.mark.parametrize("y", [[0.1, 0.9], [-3.0, -2.0], [0.5, 0.5], [-1.0, 0.0]])
def test_guessed_limit_is_a_little_above_all_values(y: list[float]) -> None:
    assert max(y) < _limit(np.array(y)) <= max(y) + 0.5 * max(abs(max(y)), max(y) - min(y))


@pytest.mark.parametrize(
    ("name", "theta"),
    [
        ("vapor_pressure", (-0.6, -0.5, 0.1)),
        ("log_log_linear", (0.4, 1.2)),
        ("log_linear", (0.2, 0.3)),
        ("ilog2", (1.0, 0.5)),
        ("pow3", (0.9, 0.6, 0.5)),  # linear at the typical exponent
    ],
)
def test_guess_is_exact_for_families_that_are_linear_in_their_parameters(
    name: str, theta: tuple[float, ...]
) -> None:
    (family,) = (one for one in FAMILIES if one.name == name)

    assert family.guess(X, family.curve(X, *theta)) == pytest.approx(theta)


@pytest.mark.parametrize(
    ("name", "share"),
    [("hill3", 0.5), ("log_power", 0.5), ("mmf", 0.5), ("weibull", np.exp(-1.0))],
)
def test_guess_of_a_sigmoid_has_its_typical_share_left_at_the_half_way_point(
    name: str, share: float
) -> None:
    (family,) = (one for one in FAMILIES if one.name == name)
    y = np.array([0.0, 0.2, 0.55, 0.8, 0.9, 1.0])
    x = np.arange(1.0, 7.0)

    guessed = family.curve(np.array([3.0, 1e9]), *family.guess(x, y))

    assert guessed[1] == pytest.approx(1.1)  # the guessed limit
    assert guessed[0] == pytest.approx(1.1 * (1 - share))


@pytest.mark.parametrize("first", [1.0, 3.0])
def test_guess_of_a_power_with_a_slope_meets_the_first_and_the_last_value(first: float) -> None:
    (family,) = (one for one in FAMILIES if one.name == "pow4")
    x, y = first + np.arange(5.0), np.array([0.2, 0.5, 0.7, 0.75, 0.8])

    guessed = family.curve(x, *family.guess(x, y))

    assert guessed[[0, -1]] == pytest.approx(y[[0, -1]])


def test_guess_of_an_exponential_is_exact_where_its_limit_is_the_guessed_one() -> None:
    (family,) = (one for one in FAMILIES if one.name == "exp4")
    theta = (1.1, 0.2, 1.0, np.log(0.1) + 2.0)
    y = family.curve(X, *theta)

    assert y[-1] == pytest.approx(1.0)  # so that a tenth above it is the limit
    assert family.guess(X, y) == pytest.approx(theta)
