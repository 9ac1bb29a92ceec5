"""Choice of columns by their scores."""

from __future__ import annotations

import logging

import numpy as np
import pytest

from nni.feature_engineering._selection import ColumnUnits, elbow, selected_columns

SINGLE = ColumnUnits.of_groups(None, 5)
SCORES = np.array([0.5, 3.0, -1.0, 2.9, 3.0])


def test_without_a_number_the_columns_above_zero_are_kept() -> None:
    assert selected_columns(SCORES, SINGLE, None, None) == [1, 4, 3, 0]


def test_at_least_one_column_is_kept() -> None:
    assert selected_columns(-SCORES - 9, SINGLE, None, None) == [2]


def test_ties_are_broken_by_the_lower_position() -> None:
    assert selected_columns(np.zeros(5), SINGLE, 3, None) == [0, 1, 2]


def test_the_number_wins_over_the_upper_bound() -> None:
    assert selected_columns(SCORES, SINGLE, 4, 1) == [1, 4, 3, 0]


def test_more_columns_than_there_are_are_all() -> None:
    assert selected_columns(SCORES, SINGLE, 9, None) == [1, 4, 3, 0, 2]


def test_the_elbow_decides_below_the_upper_bound() -> None:
    assert selected_columns(SCORES, SINGLE, None, 5) == [1, 4, 3]
    assert selected_columns(SCORES, SINGLE, None, 2) == [1, 4]


def test_constant_columns_come_last() -> None:
    scores = np.array([-np.inf, -2.0, 1.0])

    assert selected_columns(scores, ColumnUnits.of_groups(None, 3), 3, None) == [2, 1, 0]


def test_a_group_is_never_split(caplog: pytest.LogCaptureFixture) -> None:
    units = ColumnUnits.of_groups(["a", "b", "b", "c", "b"], 5)

    with caplog.at_level(logging.INFO):
        found = selected_columns(SCORES, units, 1, None)

    assert found == [1, 4, 2]
    assert "3 columns instead of 1" in caplog.text


def test_groups_need_one_label_per_column() -> None:
    with pytest.raises(ValueError, match="one label for each of the 3 columns"):
        ColumnUnits.of_groups([0, 0], 3)


@pytest.mark.parametrize(
    ("values", "expected"),
    [([5.0], 1), ([5.0, 1.0], 2), ([9.0, 1.0, 0.5, 0.0], 1), ([9.0, 8.9, 8.8, 0.1, 0.0], 3)],
)
def test_elbow_is_where_the_curve_bends(values: list[float], expected: int) -> None:
    assert elbow(np.array(values)) == expected
