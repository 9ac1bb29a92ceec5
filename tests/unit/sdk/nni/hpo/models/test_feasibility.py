"""Probability of success: learnt from regions that fail, silent where failures are random."""

import numpy as np
import pytest

from nni.hpo.models.feasibility import Feasibility, FeasibilityModel

SQUARE = np.array([0, 1])


def points(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).random((count, 2))


def succeeding(known: np.ndarray) -> np.ndarray:
    """Return which points lie outside the corner where trials fail."""
    return np.asarray(known.min(axis=1) <= 0.43)


def learnt(count: int = 40) -> Feasibility:
    """Return the probability after trials of which those in a corner failed."""
    known = points(count)
    found = FeasibilityModel(SQUARE).update(known, succeeding(known))
    assert found is not None
    return found


def test_failing_corner_is_improbable_and_the_rest_probable() -> None:
    chances = np.exp(learnt().log_probability(np.array([[0.8, 0.8], [0.2, 0.2], [0.9, 0.1]])))

    assert chances[0] < 0.3
    assert chances[1:].min() > 0.7


def test_most_unseen_points_are_classified_rightly() -> None:
    unseen = points(500, seed=1)

    likely = learnt(60).log_probability(unseen) > np.log(0.5)

    # The border takes up about 0.1 of the square at the distance of 60 points from each other.
    assert np.mean(likely == succeeding(unseen)) > 0.9


def test_random_failures_teach_next_to_nothing() -> None:
    failed = [np.random.default_rng([seed, 1]).random(30) < 0.2 for seed in range(12)]

    found = [
        FeasibilityModel(SQUARE).update(points(30, seed), ~labels)
        for seed, labels in enumerate(failed)
    ]

    # Chance makes a region of failures now and then: in about one of 20 searches.
    assert sum(one is not None for one in found) <= 2


@pytest.mark.parametrize("succeeds", [True, False])
def test_trials_that_all_end_alike_teach_nothing(succeeds: bool) -> None:
    assert FeasibilityModel(SQUARE).update(points(9), np.full(9, succeeds)) is None


def test_space_without_features_teaches_nothing() -> None:
    model = FeasibilityModel(np.empty(0, dtype=np.int64))

    assert model.update(np.empty((2, 0)), np.array([True, False])) is None


def test_weight_falls_steeply_where_success_is_unsafe() -> None:
    found = learnt()
    corner, safe = np.array([[0.9, 0.9]]), np.array([[0.1, 0.1]])

    assert found.log_weight(safe)[0] == found.log_probability(safe)[0]
    assert found.log_weight(corner)[0] < 100 * found.log_probability(corner)[0]


@pytest.mark.parametrize("at", [[0.41, 0.7], [0.2, 0.2], [0.8, 0.9]])
def test_gradients_are_those_of_finite_differences(at: list[float]) -> None:
    found, step = learnt(), 1e-6
    here = np.array(at)
    moved = here + step * np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])

    value, gradient = found.log_weight_and_gradient(here)

    values = found.log_weight(moved)
    assert value == pytest.approx(found.log_weight(here[None, :])[0])
    # Central differences are off by the third derivative times 1e-12, and by rounding of values
    # of up to a few thousand over the step: 1e-16 * 1e3 / 1e-6 = 1e-7 of them.
    assert gradient == pytest.approx((values[:2] - values[2:]) / (2 * step), rel=1e-3, abs=1e-3)


def test_fit_follows_from_the_trials_alone() -> None:
    known = points(40)
    succeeded = succeeding(known)
    model = FeasibilityModel(SQUARE)
    for count in range(1, 41):
        stepwise = model.update(known[:count], succeeded[:count])

    assert stepwise is not None
    at_once = learnt()
    unseen = points(20, seed=2)
    assert np.array_equal(stepwise.log_weight(unseen), at_once.log_weight(unseen))


def test_many_axes_share_a_lengthscale_so_that_the_fit_stays_short() -> None:
    known = np.random.default_rng(0).random((60, 30))
    succeeded = known[:, 0] < 0.5
    known[:, 1:15] = known[:, :1]

    found = FeasibilityModel(np.arange(30)).update(known, succeeded)

    assert found is not None
    assert len(np.unique(found.posterior.lengthscales)) == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_axis_that_does_not_matter_has_the_longer_lengthscale(axis: int) -> None:
    known = points(80)
    stripes = (4 * known[:, axis]).astype(np.int64) % 2 == 0

    found = FeasibilityModel(SQUARE).update(known, stripes)

    assert found is not None
    assert found.posterior.lengthscales[axis] < found.posterior.lengthscales[1 - axis]


def test_failures_that_begin_late_are_learnt() -> None:
    known = points(61)  # the hyperparameters are fitted to the first 56
    known[:56] *= 0.4  # outside the failing corner
    known[56:] = 0.7 + 0.3 * known[56:]

    found = FeasibilityModel(SQUARE).update(known, succeeding(known))

    assert found is not None
    corner, safe = found.log_probability(np.array([[0.8, 0.8], [0.2, 0.2]]))
    assert corner < safe


@pytest.mark.parametrize(("axes", "own"), [(20, True), (21, False)])
def test_up_to_twenty_axes_have_lengthscales_of_their_own(axes: int, own: bool) -> None:
    known = np.random.default_rng(0).random((40, axes))

    found = FeasibilityModel(np.arange(axes)).update(known, known[:, 0] < 0.5)

    assert found is not None
    assert (len(np.unique(found.posterior.lengthscales)) > 1) is own


def test_newest_hundred_and_fifty_of_each_outcome_are_modelled() -> None:
    known = points(400)
    succeeded = succeeding(known)
    succeeded[:200] = True

    found = FeasibilityModel(SQUARE).update(known, succeeded)

    kept = np.sort(np.append(np.flatnonzero(succeeded)[-150:], np.flatnonzero(~succeeded)))
    assert found is not None
    scaled = found.posterior.scaled_inputs
    assert scaled * found.posterior.lengthscales == pytest.approx(known[kept])


def test_fit_is_renewed_as_trials_are_added() -> None:
    known, unseen = points(45), points(10, seed=1)
    stripes = (4 * known[:, 0]).astype(np.int64) % 2 == 0
    model = FeasibilityModel(SQUARE)
    for count in (10, 30, 45):
        stepwise = model.update(known[:count], stripes[:count])

    at_once = FeasibilityModel(SQUARE).update(known, stripes)

    assert stepwise is not None
    assert at_once is not None
    assert np.array_equal(stepwise.log_weight(unseen), at_once.log_weight(unseen))


def test_fit_is_the_same_until_there_is_a_new_trial() -> None:
    known, model = points(20), FeasibilityModel(SQUARE)

    first = model.update(known, succeeding(known))

    assert first is not None
    assert model.update(known, succeeding(known)) is first
