"""Agreement of earlier tasks with the results of a new one."""

import math

import numpy as np
import pytest

from nni.hpo.models.rank_agreement import _errors, agreement

LOSSES = np.array([3.0, 1.0, 4.0, 1.5, 5.0, 0.5])
UNKNOWING = np.zeros(6)
"""An own model that predicts the mean."""


def trust_in(*scores: np.ndarray, own: np.ndarray = UNKNOWING) -> float:
    return agreement(LOSSES, np.stack(scores, axis=1), own).trust


def test_tasks_in_the_same_order_are_trusted_and_those_in_the_opposite_order_are_not() -> None:
    assert trust_in(LOSSES) > 0.9
    assert trust_in(-LOSSES) < 0.1


def test_only_the_order_counts() -> None:
    assert trust_in(1e6 * LOSSES) == trust_in(np.exp(LOSSES)) == trust_in(LOSSES)


def test_task_that_agrees_has_the_weight_of_those_that_do_not() -> None:
    found = agreement(LOSSES, np.stack([-LOSSES, LOSSES, -LOSSES], axis=1), UNKNOWING)

    assert found.weights[1] > 0.95
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.trust > 0.8


def test_own_model_that_predicts_as_well_takes_a_share_of_the_trust() -> None:
    assert trust_in(LOSSES, own=LOSSES) < trust_in(LOSSES)
    assert trust_in(LOSSES, own=LOSSES) == pytest.approx(2 / 3, abs=0.02)


def test_late_errors_count_more_than_early_ones() -> None:
    many = np.arange(20.0)
    early, late = many.copy(), many.copy()
    early[:4], late[-4:] = -many[:4], -many[-4:]

    assert (
        agreement(many, late[:, None], np.zeros(20)).trust
        < agreement(many, early[:, None], np.zeros(20)).trust
    )


def test_constant_scores_and_equal_losses_are_not_trusted() -> None:
    constant = agreement(np.ones(6), np.stack([LOSSES, UNKNOWING], axis=1), UNKNOWING)

    assert constant.trust < 0.3
    assert constant.weights.tolist() == pytest.approx([0.5, 0.5])


@pytest.mark.parametrize(
    ("losses", "scores", "errors"),
    [
        ([3.0, 1.0, 2.0], [1.0, 2.0, 3.0], [0.5, 1.0, 0.5]),  # wrong; then wrong and right
        ([1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 2.5], [0.5, 0.0, 0.0, 1 / 3]),
        ([1.0, 2.0, 3.0], [7.0, 7.0, 7.0], [0.5, 0.5, 0.5]),  # no order is half wrong
        ([1.0, 1.0, 2.0], [1.0, 2.0, 1.5], [0.5, 0.5, 0.5]),  # equal losses are not counted
    ],
)
def test_error_is_the_share_of_earlier_results_on_the_wrong_side(
    losses: list[float], scores: list[float], errors: list[float]
) -> None:
    above, predicted = (np.subtract.outer(one, one) for one in (losses, scores))

    assert _errors(predicted, above).tolist() == pytest.approx(errors)


def test_weights_fall_by_the_exponential_of_three_times_the_error() -> None:
    losses = np.array([1.0, 2.0])

    found = agreement(losses, np.array([[1.0, 2.0], [2.0, 1.0]]).T, np.zeros(2))

    # The own model predicts 0 for the second result, which is less than the first: an error of 1.
    right, wrong = 0.25, 0.25 * math.exp(-3)
    own, random = 0.25 * math.exp(-3), 0.25 * (1 + math.exp(-3)) / 2
    assert found.weights == pytest.approx([right / (right + wrong), wrong / (right + wrong)])
    assert found.trust == pytest.approx((right + wrong) / (right + wrong + own + random))


def test_error_counts_nine_tenths_with_each_further_result() -> None:
    losses = np.array([1.0, 2.0, 3.0])
    early, late = [2.0, 1.0, 3.0], [1.0, 2.0, 0.0]  # wrong at the second result, or at the third

    found = agreement(losses, np.array([early, late]).T, np.zeros(3))

    assert found.weights[0] / found.weights[1] == pytest.approx(math.exp(3.0 - 2.7))
