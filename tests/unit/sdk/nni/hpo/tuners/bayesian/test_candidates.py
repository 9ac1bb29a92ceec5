"""Candidates of a search."""

import math

import numpy as np
import pytest

from nni.hpo.arrays import Floats
from nni.hpo.encoding.encoded_space import EncodedSpace, vector_key
from nni.hpo.models.space_prior import space_prior
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.bayesian.candidates import (
    best_untaken,
    distinct,
    global_candidates,
    local_candidates,
    option_candidates,
    region_around,
    whole_region,
)

TREE = EncodedSpace(
    parse_space(
        {
            "kind": {
                "_type": "choice",
                "_value": [
                    {"_name": "flat"},
                    {"_name": "bowl", "x": {"_type": "uniform", "_value": [0, 1]}},
                ],
            },
            "y": {"_type": "uniform", "_value": [0, 1]},
        }
    )
)
KIND, Y, X = (
    next(i for i, axis in enumerate(TREE.axes) if axis.path.endswith(name))
    for name in ("kind", "y", "x")
)
SQUARE = EncodedSpace(parse_space({key: {"_type": "uniform", "_value": [0, 1]} for key in "xy"}))


def drawn(count: int) -> Floats:
    return TREE.snap(TREE.sample_filled(np.random.default_rng(1), count))


def test_half_of_the_candidates_lie_near_good_vectors() -> None:
    good = np.array([[0.5, 0.5]])

    candidates = global_candidates(SQUARE, good, 1000, np.random.default_rng(0))

    near = (np.abs(candidates - good).max(axis=1) < 0.05).mean()
    assert candidates.shape == (1000, 2)
    assert 0.25 < near < 0.5
    assert ((candidates >= 0) & (candidates <= 1)).all()


def test_without_good_vectors_all_candidates_are_draws() -> None:
    rng = np.random.default_rng(0)

    candidates = global_candidates(SQUARE, np.empty((0, 2)), 1000, rng)

    assert candidates.tolist() == np.random.default_rng(0).random((1000, 2)).tolist()


def test_candidates_of_a_region_stay_in_it() -> None:
    centre = TREE.encode({"kind": {"_name": "bowl", "x": 0.4}, "y": 0.9})
    region = region_around(centre, np.ones(len(TREE)), 0.2, np.zeros(len(TREE)))

    candidates = local_candidates(TREE, centre, region, 0.2, 300, np.random.default_rng(0))

    assert candidates[:, Y].min() >= 0.8 - 1e-9
    assert candidates[:, Y].max() <= 1.0
    assert len(np.unique(candidates[:, Y])) > 20
    assert set(candidates[:, KIND]) == {0, 1}


def test_a_region_is_longer_where_the_function_changes_slowly() -> None:
    region = region_around(np.full(2, 0.5), np.array([0.1, 0.4]), 0.2, np.zeros(2))

    sides = region.high - region.low

    assert sides[1] == pytest.approx(4 * sides[0])
    assert np.sqrt(sides.prod()) == pytest.approx(0.2)


def test_a_region_reaches_beyond_the_plateau_of_its_centre() -> None:
    region = region_around(np.full(2, 0.5), np.ones(2), 0.02, np.array([0.3, 0.0]))

    assert (region.high - 0.5).tolist() == pytest.approx([0.3, 0.01])
    assert (0.5 - region.low).tolist() == pytest.approx([0.3, 0.01])


@pytest.mark.parametrize("good", [0, 3])
def test_candidates_with_an_option_all_have_it(good: int) -> None:
    found = option_candidates(TREE, drawn(40)[:good], (KIND, 1), 50, np.random.default_rng(0))

    assert (found[:, KIND] == 1).all()
    assert len(np.unique(found[:, X])) > 20


def test_nearly_equal_candidates_count_once() -> None:
    candidates = np.array([[0.5, 0.5], [0.5, 0.500001], [0.5, 0.51], [0.1, 0.1]])

    assert [one.tolist() for one in distinct(candidates, 2)] == [[0.5, 0.5], [0.5, 0.51]]
    assert len(distinct(candidates, 9)) == 3
    assert distinct(candidates, 0) == []


def test_best_untaken_vector_skips_those_taken() -> None:
    space = EncodedSpace(parse_space({"x": {"_type": "uniform", "_value": [0, 1]}}))
    vectors = np.array([[0.1], [0.2], [0.3]])
    values = np.array([1.0, 3.0, 2.0])

    best = best_untaken(space, vectors, values, {vector_key(vectors[1])})

    assert best is not None
    assert best.tolist() == [0.3]
    assert best_untaken(space, vectors, values, {vector_key(one) for one in vectors}) is None


def test_best_untaken_vector_keeps_the_constraints() -> None:
    space = EncodedSpace(
        parse_space({"x": {"_type": "uniform", "_value": [0, 1]}, "_constraints": ["x <= 0.25"]})
    )
    vectors = np.array([[0.1], [0.2], [0.3]])

    best = best_untaken(space, vectors, np.array([1.0, 2.0, 3.0]), set())

    assert best is not None
    assert best.tolist() == [0.2]


def test_half_of_the_draws_of_the_space_follow_user_priors() -> None:
    prior = {"value": 0.2, "confidence": "high"}
    space = EncodedSpace(
        parse_space({"x": {"_type": "uniform", "_value": [0, 1], "_prior": prior}})
    )
    nothing = np.empty((0, 1))

    found = global_candidates(space, nothing, 1000, np.random.default_rng(0), space_prior(space))

    # 0.916 of one half and 0.2 of the other; five standard deviations of the share are 0.08.
    assert abs((np.abs(found - 0.2) < 0.1).mean() - 0.558) < 0.08


CHOICES = EncodedSpace(
    parse_space(
        {
            **{key: {"_type": "uniform", "_value": [0, 1]} for key in "xyz"},
            "kind": {"_type": "choice", "_value": ["a", "b", "c", "d"]},
        }
    )
)


def local(space: EncodedSpace, centre: Floats, size: float, count: int = 1000) -> Floats:
    axes = len(space)
    region = region_around(centre, np.ones(axes), size, np.zeros(axes))
    return local_candidates(space, centre, region, size, count, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("size", "flipped"), [(0.02, 0.1), (0.2, 0.1), (0.6, 0.3), (1.0, 0.5), (1.6, 0.5)]
)
def test_a_choice_is_drawn_anew_more_often_in_a_larger_region(size: float, flipped: float) -> None:
    centre = CHOICES.encode({"x": 0.5, "y": 0.5, "z": 0.5, "kind": "b"})
    axis = next(i for i, one in enumerate(CHOICES.axes) if one.categories)

    found = local(CHOICES, centre, size)

    # Three of four draws are another option; the deviation of a share of 1000 is at most 0.016.
    assert abs((found[:, axis] != centre[axis]).mean() - 0.75 * flipped) < 0.06


def test_candidates_of_a_region_fill_it_and_gather_at_its_centre() -> None:
    found = local(SQUARE, np.array([0.7, 0.7]), 0.2)[:, 0]

    assert found.min() >= 0.6 - 1e-9
    assert found.max() <= 0.8 + 1e-9
    # The first half is even over the sides of 0.2, the second has steps of 0.3 of them at most.
    assert found[:500].std() == pytest.approx(0.2 / 12**0.5, rel=0.1)
    assert found[:500].mean() == pytest.approx(0.7, abs=0.012)
    assert 0.01 < found[500:].std() < 0.045
    assert found[500:].mean() == pytest.approx(0.7, abs=0.012)


def test_few_of_many_coordinates_change_in_a_candidate_of_a_region() -> None:
    names = [f"x{index}" for index in range(20)]
    space = EncodedSpace(parse_space({n: {"_type": "uniform", "_value": [0, 1]} for n in names}))

    changed = (local(space, np.full(20, 0.5), 0.4) != 0.5).sum(axis=1)

    # Each with the chance 0.3, and one more of twenty: 0.335. The deviation of the mean is 0.07.
    assert changed.mean() == pytest.approx(20 * 0.335, abs=0.35)
    assert changed.min() >= 1


def test_four_of_few_coordinates_change_and_one_at_least() -> None:
    names = [f"x{index}" for index in range(8)]
    space = EncodedSpace(parse_space({n: {"_type": "uniform", "_value": [0, 1]} for n in names}))

    changed = (local(space, np.full(8, 0.5), 0.4) != 0.5).sum(axis=1)

    # Each with the chance 4 / 8, and one more of eight: 0.5625.
    assert changed.mean() == pytest.approx(8 * 0.5625, abs=0.25)
    assert changed.min() >= 1


@pytest.mark.parametrize(("ratio", "sides"), [(1.0, (0.2, 0.2)), (100.0, (0.06, 0.6))])
def test_sides_of_a_region_are_not_too_unequal(ratio: float, sides: tuple[float, float]) -> None:
    region = region_around(np.full(2, 0.5), np.array([0.1, 0.1 * ratio]), 0.2, np.zeros(2))

    assert (region.high - region.low).tolist() == pytest.approx(list(sides))


def test_a_region_ends_with_the_space() -> None:
    region = region_around(np.array([0.95, 0.05]), np.ones(2), 0.2, np.zeros(2))

    assert region.low.tolist() == pytest.approx([0.85, 0.0])
    assert region.high.tolist() == pytest.approx([1.0, 0.15])


def test_whole_region_is_the_whole_space() -> None:
    region = whole_region(SQUARE)

    assert (region.low.tolist(), region.high.tolist()) == ([0, 0], [1, 1])


@pytest.mark.parametrize(("apart", "count"), [(0.9e-5, 1), (1.1e-5, 2)])
def test_candidates_are_distinct_from_a_hundred_thousandth_on(apart: float, count: int) -> None:
    assert len(distinct(np.array([[0.5, 0.5], [0.5, 0.5 + apart]]), 9)) == count


def test_first_of_equal_candidates_is_the_best() -> None:
    vectors = np.array([[0.1, 0.1], [0.2, 0.2], [0.3, 0.3]])

    best = best_untaken(SQUARE, vectors, np.array([1.0, 2.0, 2.0]), set())

    assert best is not None
    assert best.tolist() == [0.2, 0.2]


def test_candidates_near_good_vectors_keep_some_coordinates_and_step_at_all_scales() -> None:
    good = np.array([[0.5, 0.5]])

    found = global_candidates(SQUARE, good, 2000, np.random.default_rng(0))[1000:]

    moves = np.abs(found - 0.5)
    # A coordinate changes with the chance 1 / 2 on average; both stay with 1 / 3.
    assert (moves == 0).mean() == pytest.approx(0.5, abs=0.08)
    assert (moves == 0).all(axis=1).mean() == pytest.approx(1 / 3, abs=0.08)
    steps = moves[moves > 0]
    assert (steps < 0.002).mean() == pytest.approx(0.24, abs=0.08)
    assert (steps > 0.1).mean() == pytest.approx(0.2, abs=0.08)


UNIT = EncodedSpace(parse_space({"x": {"_type": "uniform", "_value": [0, 1]}}))
DISTANCES = np.geomspace(3e-4, 0.45, 40)


def shares_within(steps: tuple[float, ...]) -> Floats:
    """Return the shares of normal steps of these deviations, in equal parts, within DISTANCES."""
    return np.array(
        [
            sum(math.erf(distance / step / 2**0.5) for step in steps) / len(steps)
            for distance in DISTANCES
        ]
    )


def test_steps_from_good_vectors_have_five_scales() -> None:
    rng = np.random.default_rng(0)

    found = global_candidates(UNIT, np.array([[0.5]]), 20_000, rng)[10_000:, 0]

    moves = np.abs(found[found != 0.5] - 0.5)
    shares = (moves[:, None] < DISTANCES).mean(axis=0)
    # Of 5,000 draws the greatest difference is below 0.023 in 99 of 100 cases.
    assert shares == pytest.approx(shares_within((0.3, 0.1, 0.03, 0.01, 0.001)), abs=0.023)


def test_steps_within_a_region_have_four_scales_in_shares_of_its_sides() -> None:
    found = local(UNIT, np.array([0.5]), 0.2, 10_000)[5_000:, 0]

    moves = np.abs(found - 0.5) / 0.2
    shares = (moves[:, None] < DISTANCES).mean(axis=0)
    assert shares == pytest.approx(shares_within((0.3, 0.1, 0.03, 0.01)), abs=0.023)
