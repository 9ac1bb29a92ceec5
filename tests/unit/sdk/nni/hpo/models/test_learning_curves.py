"""Estimated final losses of stopped trials."""

import json
import math

import numpy as np
import pytest

from nni.hpo.models.learning_curves import LearningCurves, estimated_final, plain_losses

VALUES = np.array([10.0, 20.0, 30.0, 40.0])
FINALS = np.array([4.0, 1.0, 3.0, 2.0])


def curves_of(*trials: tuple[list[float | None], float]) -> LearningCurves:
    """Return curves of completed trials."""
    curves = LearningCurves()
    for number, (losses, final) in enumerate(trials):
        curves.finish(number, final)
        curves.end(number, losses)
    return curves


def test_quantile_at_the_step_becomes_that_of_the_final_losses() -> None:
    assert estimated_final(35.0, VALUES, FINALS) == 3.5


@pytest.mark.parametrize("shown", [-math.inf, 5.0, 20.0])
def test_no_stopped_trial_is_better_than_the_median(shown: float) -> None:
    assert estimated_final(shown, VALUES, FINALS) == 2.5


def test_trial_behind_all_others_keeps_its_distance() -> None:
    # Final losses spread by 3 where those at the step spread by 30.
    assert estimated_final(70.0, VALUES, FINALS) == pytest.approx(4.0 + 0.1 * 30.0)
    assert estimated_final(70.0, VALUES / 100, FINALS) == pytest.approx(4.0 + 69.6)


def test_estimates_from_the_greatest_floats_are_finite() -> None:
    greatest = np.full(2, 1.7e308)

    assert estimated_final(1.0, np.array([1.0, 2.0]), greatest) == 1.7e308
    assert estimated_final(-1.0, np.array([-1.7e308, 0.0]), -greatest) == -1.7e308


def test_one_completed_trial_is_enough_and_stays_the_best() -> None:
    assert estimated_final(12.0, np.array([10.0]), np.array([1.0])) == 3.0


def test_diverged_trial_is_as_bad_as_the_worst() -> None:
    assert estimated_final(math.inf, VALUES, FINALS) == 4.0
    assert estimated_final(1e308, np.array([-1.7e308, -1.0e308]), FINALS[:2]) == 4.0
    assert estimated_final(0.0, np.array([-1.7e308, 1.7e308]), FINALS[:2]) == 2.5


def test_trials_are_compared_at_the_same_step() -> None:
    curves = curves_of(([9.0, 1.0], 0.1), ([9.5, 2.0], 0.2), ([10.0, 4.0], 0.4))

    assert curves.estimate([50.0, 3.0]) == pytest.approx(0.3)


def test_longer_trial_than_all_completed_ones_counts_as_the_worst() -> None:
    curves = curves_of(([1.0], 0.1), ([2.0], 0.5))

    assert curves.estimate([1.0, 1.0]) == 0.5


def test_missing_numbers_are_not_compared_and_a_last_one_is_the_worst() -> None:
    curves = curves_of(([None], 9.0), ([1.0], 0.1), ([2.0], 0.2))

    assert curves.estimate([1.9]) == pytest.approx(0.19)
    assert curves.estimate([None]) == 0.2


def test_nothing_is_estimated_without_results() -> None:
    curves = LearningCurves()
    curves.end(0, [1.0])  # it has failed

    assert curves.estimate([1.0]) is None
    assert curves_of(([1.0], 0.1)).estimate([]) is None


def test_long_curves_are_thinned_at_the_same_steps() -> None:
    steps = [float(step) for step in range(5000)]
    curves = curves_of(([*steps], 1.0), ([2 * step for step in steps], 2.0))

    assert len(json.dumps(curves.state())) < 2000
    assert curves.estimate([1.5 * step for step in steps[:777]]) == pytest.approx(1.5)


def test_state_survives_json() -> None:
    curves = curves_of(([1.0, None], 0.1), ([2.0, 3.0], 0.2))
    curves.finish(9, 0.4)
    other = LearningCurves()

    other.load_state(json.loads(json.dumps(curves.state())))
    for each in (curves, other):
        each.end(9, [5.0])

    assert other.state() == curves.state()
    assert other.estimate([3.5]) == curves.estimate([3.5])


def test_several_objectives_have_no_curve() -> None:
    assert plain_losses([(1.0, 2.0), None]) == []
    assert plain_losses([1.0, None]) == [1.0, None]


@pytest.mark.parametrize("restored", [False, True])
def test_newest_two_hundred_completed_trials_are_kept(restored: bool) -> None:
    worst: list[tuple[list[float | None], float]] = [([1.0], 9.0), ([1.0], 8.0)]
    good: tuple[list[float | None], float] = ([1.0], 0.5)
    curves = curves_of(*worst, *[good] * 198)
    if restored:
        other = LearningCurves()
        other.load_state(json.loads(json.dumps(curves.state())))
        curves = other
    assert curves.estimate([1.0, 1.0]) == 9.0

    curves.complete([1.0], 0.5)

    assert curves.estimate([1.0, 1.0]) == 8.0


def test_all_steps_up_to_twenty_are_kept_and_then_ever_fewer() -> None:
    curves = LearningCurves()

    curves.complete([float(step) for step in range(1, 33)], 0.5)

    ((kept, final),) = curves.state()[1]
    assert kept == [*map(float, range(1, 21)), 23.0, 26.0, 29.0, 32.0]
    assert final == 0.5


def test_trial_without_intermediate_results_is_not_compared() -> None:
    curves = curves_of(([], 9.0), ([1.0], 0.5))

    assert curves.estimate([1.0, 1.0]) == 0.5


@pytest.mark.parametrize(
    ("values", "finals", "estimate"),
    [([1.0, 2.0], [5.0, 5.0], 7.0), ([1.0, 1.0], [5.0, 6.0], 9.0)],
)
def test_distance_counts_as_it_is_where_all_results_are_equal(
    values: list[float], finals: list[float], estimate: float
) -> None:
    assert estimated_final(4.0, np.array(values), np.array(finals)) == estimate
