"""Non-dominated sorting and crowding distances."""

import math
from random import Random

import pytest

from nni.hpo.pareto import crowding_distances, dominates, pareto_front, ranks


@pytest.mark.parametrize("objectives", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_front_is_what_comparing_all_pairs_finds(objectives: int, seed: int) -> None:
    rng = Random(seed)
    # Few different numbers, so that many results are equal in some objective.
    losses = [tuple(float(rng.randrange(8)) for _ in range(objectives)) for _ in range(80)]

    expected = [
        index
        for index, loss in enumerate(losses)
        if not any(dominates(other, loss) for other in losses)
    ]

    assert pareto_front(losses) == expected


def test_equal_results_stand_together() -> None:
    assert pareto_front([(1.0, 2.0), (1.0, 2.0), (1.0, 3.0)]) == [0, 1]


def test_no_results_have_no_front() -> None:
    assert pareto_front([]) == []


def test_ranks_count_the_fronts_that_must_be_taken_away_first() -> None:
    losses = [(1.0, 4.0), (2.0, 2.0), (2.0, 5.0), (3.0, 3.0), (9.0, 9.0)]

    assert ranks(losses) == [0, 0, 1, 1, 2]


def test_ends_have_all_room_and_others_that_to_their_neighbours() -> None:
    front = [(0.0, 4.0), (1.0, 2.0), (3.0, 1.0), (4.0, 0.0)]

    assert crowding_distances(front) == [math.inf, 3 / 4 + 3 / 4, 3 / 4 + 2 / 4, math.inf]


def test_equal_results_have_no_room() -> None:
    assert crowding_distances([(1.0, 1.0)] * 3)[1] == 0


def test_an_empty_front_has_no_distances() -> None:
    assert crowding_distances([]) == []


@pytest.mark.parametrize(
    ("left", "right"), [((1.0, 2.0), (3.0,)), ((1.0,), (1.0, 2.0)), ((1.0,), (2.0, 0.0))]
)
def test_results_of_different_objectives_are_not_compared(
    left: tuple[float, ...], right: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match=r"shorter|longer"):
        dominates(left, right)


@pytest.mark.parametrize("shift", [-10.0, 10.0])
def test_distances_do_not_depend_on_where_the_front_lies(shift: float) -> None:
    front = [(0.0 + shift, 4.0), (1.0 + shift, 2.0), (3.0 + shift, 1.0), (4.0 + shift, 0.0)]

    assert crowding_distances(front) == [math.inf, 3 / 4 + 3 / 4, 3 / 4 + 2 / 4, math.inf]


def test_both_ends_of_one_objective_have_all_room() -> None:
    assert crowding_distances([(3.0,), (1.0,), (2.0,)]) == [math.inf, math.inf, 1.0]
    assert crowding_distances([(3.0,)]) == [math.inf]
