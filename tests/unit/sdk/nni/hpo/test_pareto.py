"""Pareto fronts."""

from random import Random

import pytest

from nni.hpo.pareto import dominates, pareto_front, ranks


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
