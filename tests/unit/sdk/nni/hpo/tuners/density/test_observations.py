"""Rows of a level and their ranking."""

import numpy as np
import pytest

from nni.hpo.encoding.columns import Row, levels_of
from nni.hpo.space.parser import parse_space
from nni.hpo.tuners.density.observations import Observations, row_key
from nni.hpo.tuners.density.rankings import LossRanking, Outcome

LEVEL = levels_of(
    parse_space(
        {
            "x": {"_type": "uniform", "_value": [0, 1]},
            "c": {"_type": "choice", "_value": ["a", "b"]},
        }
    )
)[0]


def row(x: float, option: int = 0) -> Row:
    return Row(0, (x,), (option,))


def observations(count: int = 0) -> Observations:
    made = Observations(LEVEL, LossRanking())
    for index in range(count):
        made.add(row(index / 1000, index % 2), Outcome((float(-index),)))
    return made


def test_rows_are_found_by_what_the_ranking_gives() -> None:
    known = observations(3)

    best, _ = known.ranking.best(2)
    points, options = known.rows(best)

    assert points.tolist() == [[0.002], [0.001]]
    assert options.tolist() == [[0], [1]]


def test_growth_keeps_all_rows() -> None:
    known = observations(500)

    assert len(known) == 500
    assert np.array_equal(known.rows([0, 499])[0], [[0.0], [0.499]])


def test_has_tells_rows_up_to_rounding() -> None:
    known = observations()
    known.add(row(0.1 + 0.2, 1), Outcome((1.0,)))

    assert known.has(row_key((0.3,), (1,)))
    assert not known.has(row_key((0.3,), (0,)))
    assert not known.has(row_key((0.31,), (1,)))


@pytest.mark.parametrize(("apart", "same"), [(4e-10, True), (-4e-10, True), (2e-9, False)])
def test_coordinates_are_equal_up_to_nine_digits(apart: float, same: bool) -> None:
    known = observations()
    known.add(row(0.5), Outcome((1.0,)))

    assert known.has(row_key((0.5 + apart,), (0,))) is same


def test_rows_are_recognised_without_an_outcome() -> None:
    known = observations()

    known.recognise(row(0.5))

    assert known.has(row_key((0.5,), (0,)))
    assert len(known) == 0


def test_rows_are_not_recognised_where_memory_counts() -> None:
    known = Observations(LEVEL, LossRanking(), recognise=False)
    known.recognise(row(0.5))
    known.add(row(0.5), Outcome((1.0,)))

    assert len(known) == 1
    with pytest.raises(AssertionError):
        known.has(row_key((0.5,), (0,)))
