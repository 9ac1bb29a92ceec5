"""Fitting and combining families of curves."""

import numpy as np
import pytest

from nni.hpo.assessors._curve_families import FAMILIES, Family
from nni.hpo.assessors._curve_prediction import (
    _log_posterior,
    fit,
    outliers,
    predict,
    sample_weights,
)
from tests.unit.sdk.nni.hpo.assessors.test_curve_families import EXAMPLES

X = np.arange(1.0, 13.0)
FORGIVING = {"pow3", "pow4", "log_power", "hill3"}
"""Families that differ from one another by less than the fit can tell at this length."""


@pytest.mark.parametrize(("mean", "less"), [(10.0, 0.5), (-20.0, 2.0)])
def test_scale_of_the_weights_is_held_back_by_a_weak_bell(mean: float, less: float) -> None:
    fits, y = np.ones((3, 5)), np.ones(5)
    walkers = np.array([[-1.0, 0.0, 1.0, -2.0], [mean - 1.0, mean, mean + 1.0, -2.0]])

    centred, moved = _log_posterior(walkers, fits, y)

    assert centred - moved == pytest.approx(less)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_family_fits_its_own_curve(family: Family) -> None:
    theta, _ = EXAMPLES[family.name]
    y = family.curve(X, *theta)

    with np.errstate(all="ignore"):
        found = fit(family, X, y)

    assert found is not None
    assert np.abs(family.curve(X, *found) - y).max() < (2e-2 if family.name in FORGIVING else 1e-3)


def test_data_that_a_formula_does_not_know_cannot_be_fitted() -> None:
    vapor_pressure = FAMILIES[0]

    with np.errstate(all="ignore"):
        assert fit(vapor_pressure, X, -X) is None


def test_far_predictions_of_bad_fits_are_outliers() -> None:
    predictions = np.array([0.90, 0.91, 0.92, 5.0, 6.0])
    errors = np.array([1e-4, 1e-4, 1e-3, 1e-5, 1e-2])

    assert outliers(errors, predictions).tolist() == [False, False, False, False, True]


def test_weights_favour_the_family_that_fits() -> None:
    y = np.linspace(0.1, 0.9, 12)
    fits = np.array([y + 0.2, y, y - 0.3])

    weights = sample_weights(fits, y, np.random.default_rng(0))

    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    assert weights.argmax() == 1
    assert (weights @ fits) == pytest.approx(y, abs=0.05)


def test_same_seed_gives_the_same_prediction() -> None:
    curve = 0.9 - 0.5 / X

    assert predict(curve, 20, 1) == predict(curve, 20, 1)


def test_prediction_of_what_is_known_is_near_it() -> None:
    curve = 0.9 - 0.5 / X

    assert predict(curve, 12, 0) == pytest.approx(curve[-1], abs=0.02)


def test_prediction_is_in_the_unit_of_the_curve() -> None:
    curve = 0.9 - 0.5 / X
    predicted = predict(curve, 20, 0)

    # A power of two changes no digit of a float.
    assert predicted is not None
    assert predict(1024 * curve, 20, 0) == 1024 * predicted


@pytest.mark.parametrize("value", [0.0, -2.0])
def test_constant_curve_is_predicted_to_stay(value: float) -> None:
    predicted = predict(np.full(12, value), 20, 0)

    assert predicted is None or predicted == pytest.approx(value, abs=0.01)


@pytest.mark.parametrize(
    ("last", "error", "outlier"),
    [(3.1, 2.0, True), (-3.1, 2.0, True), (3.0, 2.0, False), (2.9, 2.0, False), (3.1, 1.0, False)],
)
def test_outlier_is_beyond_three_median_deviations_and_fits_worse_than_most(
    last: float, error: float, outlier: bool
) -> None:
    predictions, errors = np.array([-1.0, 1.0, 0.0, 1.0, -1.0, last, 0.0]), np.ones(7)
    errors[5] = error

    assert outliers(errors, predictions).tolist() == [False] * 5 + [outlier, False]


def test_fit_ends_at_the_least_squares_of_noisy_data() -> None:
    (family,) = (one for one in FAMILIES if one.name == "pow3")
    y = family.curve(X, 0.9, 0.5, 0.7) + 0.01 * np.cos(5 * X)

    theta = fit(family, X, y)

    assert theta is not None
    cost = float(((family.curve(X, *theta) - y) ** 2).sum())
    for index in range(3):
        for change in (-1e-3, 1e-3):
            near = theta.copy()
            near[index] += change
            assert float(((family.curve(X, *near) - y) ** 2).sum()) > cost


def test_weights_of_families_that_fit_equally_are_about_equal() -> None:
    y = np.linspace(0.1, 0.9, 12)

    weights = sample_weights(np.array([y, y, y, y]), y, np.random.default_rng(0))

    assert weights == pytest.approx([0.25] * 4, abs=0.05)
