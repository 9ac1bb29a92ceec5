"""Gaussian processes of several outcomes and their acquisition function."""

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace
from nni.hpo.models.matern import Matern
from nni.hpo.models.targets import damped, standardised
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.outcome_models import (
    OutcomeAcquisition,
    OutcomeModels,
    dominators,
    limit_targets,
)

SPACE = EncodedSpace(
    parse_space(
        {
            "x": {"_type": "uniform", "_value": [0, 1]},
            "kind": {"_type": "choice", "_value": ["a", "b"]},
        }
    )
)


NONE = np.empty((0, 2))
"""No running trial."""


def grid(count: int = 12) -> Floats:
    xs = np.linspace(0, 1, count)
    return np.array([[x, kind] for kind in (0.0, 1.0) for x in xs])


def models(losses: int, limits: int) -> OutcomeModels:
    return OutcomeModels(losses, losses + limits, Matern.of(2.5), 1e-6, SPACE)


def value_at(acquisition: OutcomeAcquisition, x: float, kind: float) -> float:
    return float(acquisition.values(np.array([[x, kind]]))[0])


def opposed(vectors: Floats) -> Floats:
    """Return two losses that have their least values at 0.2 and 0.8, both higher with kind b."""
    x, kind = vectors[:, 0], vectors[:, 1]
    return np.stack([(x - 0.2) ** 2 + kind, (x - 0.8) ** 2 + kind], axis=1)


def test_vectors_between_the_least_values_are_promising() -> None:
    vectors = grid()

    fit = models(2, 0).update(vectors, opposed(vectors), NONE)

    between = value_at(fit.acquisition, 0.47, 0)
    assert between > value_at(fit.acquisition, 0.02, 0)
    assert between > value_at(fit.acquisition, 0.47, 1)
    assert set(vectors[fit.good, 1]) == {0.0}


def test_gradient_is_that_of_the_value() -> None:
    vectors = grid()
    outcomes = np.column_stack([opposed(vectors), vectors[:, 0] - 0.6])
    acquisition = models(2, 1).update(vectors, outcomes, NONE).acquisition
    at, step = np.array([0.33, 0.0]), 1e-6

    value, gradient = acquisition.value_and_gradient(SPACE.features(at[None])[0])

    higher, lower = value_at(acquisition, 0.33 + step, 0), value_at(acquisition, 0.33 - step, 0)
    assert value == pytest.approx(value_at(acquisition, 0.33, 0))
    assert gradient[0] == pytest.approx((higher - lower) / (2 * step), rel=1e-3)


def test_vectors_beyond_a_limit_are_not_promising() -> None:
    vectors = grid()
    outcomes = np.column_stack([(vectors[:, 0] - 0.2) ** 2, 0.5 - vectors[:, 0]])

    fit = models(1, 1).update(vectors, outcomes, NONE)

    assert value_at(fit.acquisition, 0.52, 0) > value_at(fit.acquisition, 0.2, 0) + 1
    assert (vectors[fit.good, 0] > 0.5).all()


def test_while_nothing_keeps_the_limits_only_their_probability_counts() -> None:
    vectors = grid()[:8]
    outcomes = np.column_stack([vectors[:, 0], 0.9 - vectors[:, 0]])

    fit = models(1, 1).update(vectors, outcomes, NONE)

    assert fit.acquisition.boxes is None
    assert value_at(fit.acquisition, 0.95, 0) > value_at(fit.acquisition, 0.1, 0)
    assert vectors[fit.good, 0].tolist() == [vectors[:, 0].max()]


def test_running_trials_count_as_predicted() -> None:
    vectors = grid(5)
    outcomes = opposed(vectors)

    free = models(2, 0).update(vectors, outcomes, NONE).acquisition
    waiting = models(2, 0).update(vectors, outcomes, np.array([[0.4, 0.0]])).acquisition

    assert value_at(waiting, 0.4, 0) < value_at(free, 0.4, 0) - 1


def test_limits_that_are_only_kept_or_broken_stand_apart() -> None:
    targets, threshold = limit_targets(np.array([0.0, 0.0, 1.0, 3.0]))

    assert threshold is not None
    assert targets[0] == targets[1] < threshold < targets[2] < targets[3]


@pytest.mark.parametrize("excess", [[-1.0, -1.0], [2.0, 2.0]])
def test_limits_from_which_all_are_equally_far_say_nothing(excess: list[float]) -> None:
    targets, threshold = limit_targets(np.array(excess))

    assert threshold is None
    assert targets.tolist() == [0, 0]


def test_missing_outcomes_count_as_the_worst() -> None:
    targets, threshold = limit_targets(np.array([-1.0, 5.0, np.inf]))

    assert threshold is not None
    assert targets[2] == targets[1] > threshold


def test_dominators_are_counted_without_equals() -> None:
    losses = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [2.0, 0.5]])

    assert dominators(losses).tolist() == [0, 0, 2, 2, 1]


@pytest.mark.parametrize(("losses", "limits"), [(1, 0), (2, 0), (1, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize("x", [0.12, 0.37, 0.8])
def test_gradient_is_that_of_the_value_where_predictions_are_uncertain(
    losses: int, limits: int, x: float
) -> None:
    vectors = grid(4)
    kinds = [
        opposed(vectors)[:, :losses],
        np.column_stack([vectors[:, 0] - 0.6, 0.1 - vectors[:, 0]]),
    ]
    outcomes = np.column_stack([kinds[0], kinds[1][:, :limits]])
    acquisition = models(losses, limits).update(vectors, outcomes, NONE).acquisition
    step = 1e-6

    value, gradient = acquisition.value_and_gradient(SPACE.features(np.array([[x, 0.0]]))[0])

    higher, lower = value_at(acquisition, x + step, 0), value_at(acquisition, x - step, 0)
    assert value == pytest.approx(value_at(acquisition, x, 0))
    assert gradient[0] == pytest.approx((higher - lower) / (2 * step), rel=1e-3, abs=1e-5)


def test_state_restores_the_hyperparameters_of_every_outcome() -> None:
    vectors = grid()
    first, second = models(2, 1), models(2, 1)
    first.update(vectors, np.column_stack([opposed(vectors), vectors[:, 0] - 0.6]), NONE)
    assert second.state() != first.state()

    second.load_state(first.state())

    assert second.state() == first.state()


@pytest.mark.parametrize(
    ("excess", "scaled"),
    [
        ([0.0, 3.0], [-0.5, np.log(2)]),
        ([-1.0, 1.0], [-np.log(2), np.log(2)]),
        ([-0.1, 1.0, 3.0], [-0.5, np.log(2), np.log(4)]),
        ([-3.0, 0.0, 1.0, np.inf], [-np.log(2.5), -0.5, np.log(1.5), np.log(2.5)]),
    ],
)
def test_excess_is_scaled_by_the_logarithm_of_its_share_of_the_median(
    excess: list[float], scaled: list[float]
) -> None:
    values = np.array(scaled)

    targets, threshold = limit_targets(np.array(excess))

    assert targets == pytest.approx((values - values.mean()) / values.std())
    assert threshold == pytest.approx(-values.mean() / values.std())


def test_outcomes_of_which_only_is_known_that_they_break_a_limit_count_as_one() -> None:
    targets, threshold = limit_targets(np.array([0.0, 0.0, np.inf, 0.0]))

    values = np.array([-1.0, -1.0, 1.0, -1.0])
    assert targets == pytest.approx((values - values.mean()) / values.std())
    assert threshold == pytest.approx(-values.mean() / values.std())


@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_lucky_result_does_not_bound_the_improvement_where_results_are_noisy(noise: float) -> None:
    vectors = grid()
    errors = np.random.default_rng(0).normal(0, noise, len(vectors))
    column = opposed(vectors)[:, 0] + errors

    boxes = models(1, 0).update(vectors, column[:, None], NONE).acquisition.boxes

    assert boxes is not None
    lowest_known = boxes.edges[0][1]
    lowest_measured = standardised(damped(column)).min()
    if noise:
        assert lowest_known > lowest_measured + 0.1
    else:
        assert lowest_known == pytest.approx(lowest_measured)


def test_results_that_all_break_limits_are_ranked_by_each_of_them_alike() -> None:
    excess = np.array([[1.0, 1.0], [300.0, 0.0], [300.0, 2.0], [np.inf, -5.0]])
    outcomes = np.column_stack([np.arange(4.0), excess])

    fit = models(1, 2).update(grid(2), outcomes, NONE)

    # Ranks of the first limit: 0, 1, 1, 2; of the second one: 1, 0, 2, 0.
    assert fit.good.tolist() == [0, 1]
    assert fit.acquisition.boxes is None
    assert fit.modelled == 4


def test_improvements_reach_a_tenth_of_the_range_beyond_the_worst_losses() -> None:
    vectors = grid()
    column = opposed(vectors)[:, 0]

    boxes = models(2, 0).update(vectors, opposed(vectors), NONE).acquisition.boxes
    equal = np.column_stack([column, np.ones(len(vectors))])
    constant = models(2, 0).update(vectors, equal, NONE).acquisition.boxes

    targets = standardised(damped(opposed(vectors)[:, 1]))
    assert boxes is not None
    assert boxes.edges[1][-1] == pytest.approx(targets.max() + 0.1 * np.ptp(targets))
    assert constant is not None
    assert constant.edges[1][-1] == pytest.approx(0.1)


@pytest.mark.parametrize(("x", "counts"), [(0.25, True), (0.9, False)])
def test_running_trial_counts_if_it_is_expected_to_keep_the_limits(x: float, counts: bool) -> None:
    vectors = grid()
    lowest = 0.25 if counts else 0.9
    outcomes = np.column_stack([(vectors[:, 0] - lowest) ** 2, vectors[:, 0] - 0.6])

    boxes = models(1, 1).update(vectors, outcomes, np.array([[x, 0.0]])).acquisition.boxes

    within = standardised(damped(outcomes[:, 0]))[outcomes[:, 1] <= 0]
    assert boxes is not None
    assert bool(boxes.edges[0][-1] < within.min() - 1e-9) is counts
