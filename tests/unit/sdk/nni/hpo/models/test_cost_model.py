"""Model of run times, and the exponent of costs."""

import json

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.models.cost_model import FEWEST, HALF_AFTER, LEAST_S, CostModel, cost_exponent

AXES = np.array([0, 1])
POINTS = np.random.default_rng(0).random((12, 2))
SECONDS: Floats = np.exp(4.0 * POINTS[:, 0])
"""From 1 to 55, by the first feature alone."""


def test_exponent_falls_with_the_results_without_a_budget() -> None:
    found = [cost_exponent(results, 0.0, None) for results in (0, int(HALF_AFTER), 1000)]

    assert found[:2] == [1.0, 0.5]
    assert 0.0 < found[2] < 0.05


@pytest.mark.parametrize(("spent_s", "exponent"), [(0, 1.0), (25, 0.75), (100, 0.0), (300, 0.0)])
def test_exponent_is_the_share_of_the_budget_that_is_left(spent_s: float, exponent: float) -> None:
    assert cost_exponent(7, spent_s, 100.0) == exponent


def test_weight_falls_with_the_predicted_run_time_by_the_exponent() -> None:
    ends = np.array([[0.1, 0.5], [0.9, 0.5]])

    whole = CostModel(AXES).predict(POINTS, SECONDS, 1.0)
    half = CostModel(AXES).predict(POINTS, SECONDS, 0.5)

    assert whole is not None
    assert half is not None
    # The logarithm of the run time is linear: 4 per unit, which 12 points tell within a tenth.
    assert float(np.diff(whole.log_weight(ends))[0]) == pytest.approx(-3.2, abs=0.3)
    assert half.log_weight(ends) == pytest.approx(0.5 * whole.log_weight(ends))


def test_gradient_is_that_of_the_weight() -> None:
    prediction, step = CostModel(AXES).predict(POINTS, SECONDS, 0.7), 1e-5
    assert prediction is not None
    features = np.array([0.35, 0.6])

    value, gradient = prediction.log_weight_and_gradient(features)

    shifts = np.eye(2) * step
    above = prediction.log_weight(features + shifts)
    below = prediction.log_weight(features - shifts)
    assert gradient == pytest.approx((above - below) / (2 * step), abs=1e-4)
    assert value == pytest.approx(prediction.log_weight(features[None, :])[0])


@pytest.mark.parametrize(
    ("seconds", "exponent"),
    [
        (SECONDS[: FEWEST - 1], 1.0),
        (np.full(12, 3.0), 1.0),
        (np.linspace(1e-6, LEAST_S, 12), 1.0),
        (SECONDS, 0.0),
    ],
)
def test_few_or_equal_run_times_are_not_predicted_nor_those_that_do_not_count(
    seconds: Floats, exponent: float
) -> None:
    assert CostModel(AXES).predict(POINTS[: len(seconds)], seconds, exponent) is None


def test_model_goes_on_from_its_state() -> None:
    first, second = CostModel(AXES), CostModel(AXES)
    first.predict(POINTS[:8], SECONDS[:8], 1.0)
    second.load_state(json.loads(json.dumps(first.state())))

    found = [model.predict(POINTS, SECONDS, 1.0) for model in (first, second)]

    weights = [one.log_weight(POINTS).tolist() for one in found if one is not None]
    assert weights[0] == weights[1]


def test_exponent_is_one_half_after_thirty_results_without_a_budget() -> None:
    assert cost_exponent(30, 0.0, None) == 0.5


@pytest.mark.parametrize(
    "seconds",
    [SECONDS[:4], np.linspace(1e-3, 2e-3, 12), 3.0 + 0.03 * POINTS[:, 0]],
    ids=["four", "milliseconds", "within a hundredth"],
)
def test_four_short_or_similar_run_times_are_predicted(seconds: Floats) -> None:
    assert CostModel(AXES).predict(POINTS[: len(seconds)], seconds, 1.0) is not None
