"""Weights of observations under noise with heavy tails."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.gp_regression import Kernel, correlations, initial_hyperparameters
from nni.hpo.models.matern import Matern
from nni.hpo.models.student_t import DEGREES, noise_weights
from nni.hpo.models.targets import standardised

KERNEL = Kernel(np.arange(1), Matern.of(2.5))
INPUTS = np.linspace(0, 1, 25)[:, None]
WAVE = np.sin(5 * INPUTS[:, 0])


def weights(losses: Floats, inputs: Floats = INPUTS) -> Floats:
    correlation = correlations(inputs, inputs, KERNEL, initial_hyperparameters(1))
    return noise_weights(correlation, standardised(losses))[0]


def test_outlier_has_a_small_weight_and_its_neighbours_have_not() -> None:
    noise = 0.1 * np.random.default_rng(0).standard_normal(25)
    shifts = np.where(np.arange(25) == 12, -3.0, 0.0)

    found = weights(WAVE + noise + shifts)

    assert found[12] < 0.1
    assert np.delete(found, 12).min() > 0.3


def test_without_an_outlier_none_has_a_small_weight() -> None:
    noise = 0.1 * np.random.default_rng(0).standard_normal(25)

    assert weights(WAVE + noise).min() > 0.3


def test_weights_are_those_of_the_gamma_prior() -> None:
    found = weights(WAVE)

    assert 1 < found.max() <= (DEGREES + 1) / DEGREES
    assert found.min() > 0


def test_of_two_measurements_the_one_against_the_neighbours_is_the_outlier() -> None:
    inputs = np.concatenate([INPUTS, INPUTS[[12]]])
    noise = 0.1 * np.random.default_rng(0).standard_normal(26)
    losses = np.append(WAVE, WAVE[12]) + noise
    losses[12] -= 3.0

    found = weights(losses, inputs)

    assert found[12] < 0.1
    assert found[25] > 0.3


def test_equal_results_have_equal_weights() -> None:
    found = weights(np.ones(25))

    assert np.isfinite(found).all()
    assert np.ptp(found) < 0.3


def test_residuals_tell_lucky_outliers_from_unlucky_ones() -> None:
    shifts = np.where(np.arange(25) == 12, -3.0, 0.0) + np.where(np.arange(25) == 5, 3.0, 0.0)
    correlation = correlations(INPUTS, INPUTS, KERNEL, initial_hyperparameters(1))

    weights, residuals = noise_weights(correlation, standardised(WAVE + shifts))

    assert set(np.argsort(weights)[:2]) == {5, 12}
    assert residuals[12] < 0 < residuals[5]


def test_noise_has_four_degrees_of_freedom() -> None:
    noise = 0.1 * np.random.default_rng(0).standard_normal(25)

    # With three it would be 1.24, with five 1.15.
    assert weights(WAVE + noise).max() == pytest.approx(1.18, abs=0.02)
