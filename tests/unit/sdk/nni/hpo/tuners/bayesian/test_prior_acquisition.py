"""Acquisition functions that are weighted by user priors."""

from dataclasses import dataclass

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.models.prior_density import prior_exponent
from nni.hpo.models.space_prior import SpacePrior
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.prior_acquisition import STRENGTH, weighted_by_prior

SPACE = EncodedSpace(
    parse_space(
        {
            "x": {"_type": "uniform", "_value": [0, 1], "_prior": 0.2},
            "y": {"_type": "uniform", "_value": [0, 1]},
        }
    )
)
PRIOR = SpacePrior(SPACE)


@dataclass(frozen=True)
class Slope:
    """Acquisition that is linear in the features."""

    weights: tuple[float, ...] = (1.0, -2.0)

    def values(self, vectors: Floats) -> Floats:
        found: Floats = SPACE.features(vectors) @ np.array(self.weights)
        return found

    def value_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        return float(features @ np.array(self.weights)), np.array(self.weights)


def test_acquisition_without_a_prior_is_itself() -> None:
    slope = Slope()

    assert weighted_by_prior(slope, None, 10) is slope


@pytest.mark.parametrize("results", [1, 10, 1000])
def test_log_prior_is_added_with_a_weight_that_falls_with_the_results(results: int) -> None:
    vectors = np.random.default_rng(0).random((5, 2))

    found = weighted_by_prior(Slope(), PRIOR, results).values(vectors)

    weight = prior_exponent(results, STRENGTH)
    assert found == pytest.approx(Slope().values(vectors) + weight * PRIOR.log_ratio(vectors))


def test_gradient_is_that_of_the_values() -> None:
    acquisition, step = weighted_by_prior(Slope(), PRIOR, 7), 1e-6
    vector = np.array([0.35, 0.6])

    value, gradient = acquisition.value_and_gradient(vector)

    shifts = np.eye(2) * step
    above, below = acquisition.values(vector + shifts), acquisition.values(vector - shifts)
    assert gradient == pytest.approx((above - below) / (2 * step), abs=1e-4)
    assert value == pytest.approx(acquisition.values(vector[None, :])[0])


def test_prior_has_its_plain_weight_after_ten_results() -> None:
    found = weighted_by_prior(Slope(), PRIOR, 10)

    vectors = np.array([[0.2, 0.4], [0.7, 0.1]])
    assert found.values(vectors) == pytest.approx(
        Slope().values(vectors) + PRIOR.log_ratio(vectors)
    )
