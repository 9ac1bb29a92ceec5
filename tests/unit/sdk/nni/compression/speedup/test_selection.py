"""Sets of units that keep equal rows equal."""

import itertools

import numpy as np
import pytest

from nni.compression.speedup.deadline import Deadline
from nni.compression.speedup.selection import balanced, components, largest_balanced


def test_each_row_loses_its_lowest_units() -> None:
    rows = np.arange(12).reshape(3, 4)
    [component] = components([rows], sparsity=0.5)
    order = [3, 2, 1, 0, 4, 5, 6, 7, 8, 9, 10, 11]

    found = balanced(component, np.ones(12, dtype=bool), order, {})

    assert found.tolist() == [2, 3, 4, 5, 8, 9]


def test_a_row_with_one_dead_unit_limits_the_others() -> None:
    wanted = np.array([True, True, True, False, True, False])

    found = largest_balanced([np.array([[0, 1, 2], [3, 4, 5]])], wanted)

    assert np.flatnonzero(found).tolist() == [0, 4]


def test_units_without_balance_are_kept_as_they_are() -> None:
    wanted = np.array([True, False, True, False])

    found = largest_balanced([np.array([[0], [1]])], wanted)

    assert np.flatnonzero(found).tolist() == [2]


def test_overlapping_balances_are_solved_together() -> None:
    halves, quarters = np.arange(8).reshape(2, 4), np.arange(8).reshape(4, 2)
    [component] = components([halves, quarters])

    found = balanced(component, np.ones(8, dtype=bool), list(range(8)), {0: 2})

    for rows in (halves, quarters):
        counts = np.isin(rows, found).sum(axis=1)
        assert len(set(counts.tolist())) == 1
    assert len(found) == 4


def test_separate_balances_are_separate_components() -> None:
    found = components([np.array([[0], [1]]), np.array([[2], [3]]), np.array([[1], [4]])])

    assert sorted(one.units.tolist() for one in found) == [[0, 1, 4], [2, 3]]


@pytest.mark.parametrize("limit", [0, 1])
def test_limits_of_rows_are_kept(limit: int) -> None:
    [component] = components([np.array([[0, 1], [2, 3]])])

    found = balanced(component, np.ones(4, dtype=bool), [0, 1, 2, 3], {0: limit})

    assert len(found) == 2 * limit


def test_after_the_deadline_equal_rows_stay_equal() -> None:
    [component] = components([np.arange(20).reshape(2, 10)])
    reads = itertools.count()
    deadline = Deadline(3.0, lambda: float(next(reads)))

    found = balanced(component, np.ones(20, dtype=bool), list(range(20)), {}, deadline)

    assert 0 < len(found) < 20
    assert (found < 10).sum() == (found >= 10).sum()
