"""Acquisition functions that are divided by predicted costs."""

from dataclasses import dataclass

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.models.cost_model import CostModel, CostPrediction
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.cost_acquisition import divided_by_cost

NUMBER = {"_type": "uniform", "_value": [0, 1]}
SPACE = EncodedSpace(parse_space({"x": NUMBER, "y": NUMBER}))
POINTS = np.random.default_rng(0).random((10, 2))


@dataclass(frozen=True)
class Slope:
    """Acquisition that is linear in the features."""

    weights: tuple[float, ...] = (1.0, -2.0)

    def values(self, vectors: Floats) -> Floats:
        found: Floats = SPACE.features(vectors) @ np.array(self.weights)
        return found

    def value_and_gradient(self, features: Floats) -> tuple[float, Floats]:
        return float(features @ np.array(self.weights)), np.array(self.weights)


def cost() -> CostPrediction:
    found = CostModel(SPACE.feature_axes).predict(POINTS, np.exp(3.0 * POINTS[:, 1]), 0.8)
    assert found is not None
    return found


def test_acquisition_without_a_cost_is_itself() -> None:
    slope = Slope()

    assert divided_by_cost(SPACE, slope, None) is slope


def test_weighted_log_cost_is_subtracted() -> None:
    prediction = cost()

    found = divided_by_cost(SPACE, Slope(), prediction).values(POINTS)

    assert found == pytest.approx(Slope().values(POINTS) + prediction.log_weight(POINTS))


def test_gradient_is_that_of_the_values() -> None:
    acquisition, step = divided_by_cost(SPACE, Slope(), cost()), 1e-5
    vector = np.array([0.35, 0.6])

    value, gradient = acquisition.value_and_gradient(vector)

    shifts = np.eye(2) * step
    above, below = acquisition.values(vector + shifts), acquisition.values(vector - shifts)
    assert gradient == pytest.approx((above - below) / (2 * step), abs=1e-4)
    assert value == pytest.approx(acquisition.values(vector[None, :])[0])
