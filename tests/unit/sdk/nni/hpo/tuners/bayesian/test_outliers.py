"""Outliers among results, and which of these are measured again."""

import json

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import VectorKey, vector_key
from nni.hpo.models.gp_model import GPModel
from nni.hpo.models.gp_regression import Kernel, initial_hyperparameters
from nni.hpo.models.matern import Matern
from nni.hpo.models.targets import standardised
from nni.hpo.tuners.bayesian.outliers import MeasuredResults, Outliers, is_exact, is_noisy

KERNEL = Kernel(np.arange(1), Matern.of(2.5))
FIT = initial_hyperparameters(1)
VECTORS = np.linspace(0, 1, 25)[:, None]
WAVE = np.sin(5 * VECTORS[:, 0]) + 0.05 * np.random.default_rng(0).standard_normal(25)
LUCKY = WAVE - 5.0 * (np.arange(25) == 20)
"""The measurement at position 20 is far too good."""


def repeat(
    outliers: Outliers, losses: Floats, running: set[VectorKey] | None = None
) -> Floats | None:
    vectors = VECTORS if len(losses) == 25 else np.concatenate([VECTORS, VECTORS[[20]]])
    return outliers.repeat(MeasuredResults(vectors, vectors, losses), running or set(), KERNEL, FIT)


def found(losses: Floats, again: float) -> list[int]:
    """Return the positions of outliers once position 20 has a second measurement."""
    outliers = Outliers()
    vectors = np.concatenate([VECTORS, VECTORS[[20]]])
    outliers.update(MeasuredResults(vectors, vectors, np.append(losses, again)), KERNEL, FIT)
    return np.flatnonzero(~outliers.credible(26)).tolist()


def test_suspiciously_good_result_is_measured_again_once() -> None:
    outliers = Outliers()

    assert repeat(outliers, LUCKY) == VECTORS[20]
    assert repeat(outliers, LUCKY) is None


def test_expected_result_is_not_measured_again() -> None:
    assert repeat(Outliers(), WAVE) is None


def test_running_configuration_is_not_measured_again() -> None:
    assert repeat(Outliers(), LUCKY, {vector_key(VECTORS[20])}) is None


def test_after_an_exact_second_measurement_there_is_no_other_one() -> None:
    losses = np.append(LUCKY, LUCKY[20])
    losses[5] = -9.0

    assert repeat(Outliers(), losses) is None


def test_second_measurements_are_a_share_of_the_results() -> None:
    outliers = Outliers()
    outliers.load_state([[[float(number)] for number in range(5)], []])

    assert repeat(outliers, LUCKY) is None


def test_lucky_result_is_an_outlier_once_its_second_measurement_differs() -> None:
    assert found(LUCKY, WAVE[20]) == [20]


def test_unlucky_result_is_no_outlier() -> None:
    assert 5 not in found(WAVE + 5.0 * (np.arange(25) == 5), WAVE[20] + 0.01)


@pytest.mark.parametrize(("place", "depth", "outlying"), [(22, 0.2, []), (15, 0.4, [15])])
def test_good_losses_are_weighed_in_proportion(
    place: int, depth: float, outlying: list[int]
) -> None:
    # On a logarithmic scale the first result would be an outlier, and the second would not.
    assert found(WAVE - depth * (np.arange(25) == place), WAVE[20] + 0.01) == outlying


def test_confirmed_result_is_no_outlier() -> None:
    assert found(LUCKY, LUCKY[20]) == []
    assert found(LUCKY, LUCKY[20] + 0.01) == []


def test_new_results_are_no_outliers() -> None:
    assert Outliers().credible(3).all()


def test_goes_on_from_its_state() -> None:
    first, second = Outliers(), Outliers()
    repeat(first, LUCKY)
    vectors = np.concatenate([VECTORS, VECTORS[[20]]])
    first.update(MeasuredResults(vectors, vectors, np.append(LUCKY, WAVE[20])), KERNEL, FIT)

    second.load_state(json.loads(json.dumps(first.state())))

    assert second.credible(26).tolist() == first.credible(26).tolist()
    assert repeat(second, LUCKY) is None


@pytest.mark.parametrize(
    ("losses", "noisy", "exact"),
    [([1.0, 1.0, 2.0], False, True), ([1.0, 1.5, 2.0], True, False)],
)
def test_second_measurements_tell_whether_there_is_noise(
    losses: list[float],
    noisy: bool,
    exact: bool,
) -> None:
    keys = [(0.0,), (0.0,), (1.0,)]

    assert is_noisy(keys, np.array(losses)) is noisy
    assert is_exact(keys, np.array(losses)) is exact


def test_single_measurements_tell_nothing() -> None:
    keys = [(0.0,), (1.0,)]

    assert not is_noisy(keys, np.array([1.0, 1.0]))
    assert not is_exact(keys, np.array([1.0, 1.0]))


def test_suspicious_result_of_a_fitted_model_is_measured_again() -> None:
    outliers, model = Outliers(), GPModel(KERNEL)
    results = MeasuredResults(VECTORS, VECTORS, LUCKY)
    assert outliers.suspect(results, set(), model) is None
    model.update(VECTORS, standardised(WAVE), np.arange(25), 25)

    assert outliers.suspect(results, set(), model) == VECTORS[20]
    assert outliers.suspect(results, set(), model) is None


def test_outliers_are_found_on_the_way_to_a_suspect() -> None:
    outliers, model = Outliers(), GPModel(KERNEL)
    model.update(VECTORS, standardised(WAVE), np.arange(25), 25)
    vectors = np.concatenate([VECTORS, VECTORS[[20]]])

    outliers.suspect(MeasuredResults(vectors, vectors, np.append(LUCKY, WAVE[20])), set(), model)

    assert np.flatnonzero(~outliers.credible(26)).tolist() == [20]
    assert outliers.credible(21).tolist() == [True] * 20 + [False]
    assert outliers.credible(20).all()


@pytest.mark.parametrize(("repeated", "again"), [(4, True), (5, False)])
def test_a_fifth_of_the_results_may_be_measured_again(repeated: int, again: bool) -> None:
    outliers = Outliers()
    outliers.load_state([[[-1.0 - number] for number in range(repeated)], []])

    assert (repeat(outliers, LUCKY) is not None) is again


@pytest.mark.parametrize("again", [-5.9, -3.0])
def test_result_with_a_second_measurement_is_not_measured_a_third_time(again: float) -> None:
    assert repeat(Outliers(), np.append(LUCKY, again)) is None
