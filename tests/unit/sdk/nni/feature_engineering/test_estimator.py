"""Checks of tables and targets that all selectors share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from nni.feature_engineering._estimator import check_integer, class_codes, regression_target
from nni.feature_engineering.gradient_selector import FeatureGradientSelector


def table_with(value: float, column: int) -> np.ndarray[Any, Any]:
    table = np.arange(12.0).reshape(4, 3)
    table[2, column] = value
    return table


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_the_first_bad_column_is_named(value: float, convert: Any) -> None:
    with pytest.raises(ValueError, match="NaN or infinity, first in column 1:"):
        FeatureGradientSelector().fit(convert(table_with(value, 1)), [0, 1, 0, 1])


def test_the_name_of_a_bad_column_is_shown() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table_with(np.nan, 2), columns=["a", "b", "c"])

    with pytest.raises(ValueError, match=r"column 2 \('c'\)"):
        FeatureGradientSelector().fit(frame, [0, 1, 0, 1])


@pytest.mark.parametrize(
    ("table", "target", "message"),
    [
        (np.ones((3, 2)), [0, 1], "inconsistent numbers of samples"),
        (np.ones((0, 2)), [], "0 sample"),
        (np.ones((3, 0)), [0, 1, 0], "0 feature"),
        (np.eye(3), [1, 1, 1], "at least two classes, got 1"),
        (np.eye(3), [0.1, 0.2, 0.35], "labels of classes"),
    ],
)
def test_data_that_do_not_fit_are_refused(table: Any, target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        FeatureGradientSelector().fit(table, target)


def test_codes_are_positions_of_sorted_classes() -> None:
    classes, codes = class_codes(np.array(["b", "a", "c", "b"]))

    assert classes.tolist() == ["a", "b", "c"]
    assert codes.tolist() == [1, 0, 2, 1]


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (["a", "b"], "must hold numbers"),
        ([1.0, np.nan], "NaN or infinity"),
        ([2.0, 2.0], "must vary"),
    ],
)
def test_a_target_that_is_no_regression_is_refused(target: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        regression_target(np.array(target))


@pytest.mark.parametrize("value", [True, 1.0, "1", None])
def test_a_number_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="order must be an int"):
        check_integer("order", value, 1, 12)


def test_a_number_outside_its_range_is_refused_with_the_range() -> None:
    with pytest.raises(ValueError, match="order must be between 1 and 12, got 13"):
        check_integer("order", 13, 1, 12)
    with pytest.raises(ValueError, match="topk must be >= 1, got 0"):
        check_integer("topk", 0, 1)
