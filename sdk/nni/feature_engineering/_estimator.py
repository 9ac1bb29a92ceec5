"""Part that the selectors share: the contract of scikit-learn, and checks of what they are given.

Sparse tables stay sparse: they are read as CSR and no dense copy is made.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nni.feature_engineering._scikit_learn import (
    BaseEstimator,
    SelectorMixin,
    check_is_fitted,
    column_or_1d,
    csr_array,
    csr_matrix,
    issparse,
    type_of_target,
    validate_data,
)
from nni.feature_engineering.feature_selector import Column, FeatureSelector, Table

__all__ = ["SelectionEstimator", "check_integer", "class_codes", "regression_target"]


# scikit-learn has no types.
class SelectionEstimator(FeatureSelector, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of the selectors: scikit-learn's transformer interface, and checks of the input.

    A subclass sets `selected_features_`, positions with the best first, in `fit`.
    """

    selected_features_: list[int]
    """Positions of the selected columns, best first; set by `fit`."""
    n_features_in_: int
    """Number of columns of the table; set by `fit`."""

    def __sklearn_tags__(self) -> object:
        """Return tags for scikit-learn: sparse input is accepted, a target is required."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags

    def _get_support_mask(self) -> NDArray[np.bool_]:
        """Return the boolean mask of the selected columns; raise unless fitted."""
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self._positions()] = True
        return mask

    def _positions(self) -> list[int]:
        """Return the positions that `transform` keeps, of a fitted selector."""
        return self.selected_features_

    def _checked(self, table: Table, target: Column) -> tuple[Table, NDArray[Any]]:
        """Validate table and target of a fit; return them as float array or CSR, and 1-d array.

        Raises:
            ValueError: the shapes do not fit, or the table has NaN or infinite values.
        """
        checked, plain = validate_data(
            self,
            table,
            target,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
            ensure_min_samples=2,
            y_numeric=False,
            multi_output=True,
        )
        self._raise_for_bad_column(checked)
        if issparse(checked) and not checked.has_canonical_format:
            checked = checked.copy()
            checked.sum_duplicates()
        return checked, column_or_1d(plain, warn=True)

    def _raise_for_bad_column(self, table: Table) -> None:
        """Raise ValueError if a value is NaN or infinite, with the first such column."""
        if isinstance(table, csr_matrix | csr_array):
            bad = table.indices[~np.isfinite(table.data)]
        else:
            bad = np.flatnonzero(~np.isfinite(table).all(axis=0))
        if not len(bad):
            return
        column = int(bad.min())
        names = getattr(self, "feature_names_in_", None)
        name = f" ({names[column]!r})" if names is not None else ""
        raise ValueError(
            f"Input X contains NaN or infinity, first in column {column}{name}: "
            f"{type(self).__name__} needs finite values; impute them or remove the column"
        )


def class_codes(target: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the classes in ascending order, and the position of each row's class.

    Args:
        target: `(n_samples,)`, labels of classes.

    Returns:
        Classes, and `(n_samples,)` codes.

    Raises:
        ValueError: the target has fewer than two classes, or real numbers.
    """
    kind = type_of_target(target, input_name="y")
    if kind not in {"binary", "multiclass"}:
        raise ValueError(
            f"Unknown label type: {kind}. y must be labels of classes in classification; for "
            "real numbers select a regression"
        )
    classes, codes = np.unique(target, return_inverse=True)
    if len(classes) < 2:  # noqa: PLR2004 - what a classification is
        raise ValueError(f"y must have at least two classes, got {len(classes)} class: {classes}")
    return classes, codes


def regression_target(target: NDArray[Any]) -> NDArray[np.float64]:
    """Return a regression's target in double precision; raise unless finite and not constant.

    Args:
        target: `(n_samples,)`, real numbers.

    Returns:
        The same numbers in double precision.

    Raises:
        ValueError: a value is NaN, infinite or not a number, or all are the same.
    """
    try:
        numbers = target.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"y must hold numbers in a regression, got values of type {target.dtype}"
        ) from error
    if not np.isfinite(numbers).all():
        raise ValueError("Input y contains NaN or infinity: remove the rows without a target")
    if np.ptp(numbers) == 0:
        raise ValueError(f"y must vary in a regression, got {numbers[0]} in every row")
    return numbers


def check_integer(name: str, value: object, low: int, high: int | None = None) -> int:
    """Return a value as int; raise unless it is a whole number within the limits.

    Args:
        name: argument that is checked.
        value: value that was given.
        low: smallest value.
        high: largest value; None for no limit.

    Returns:
        The value as an int.

    Raises:
        TypeError: the value is no whole number.
        ValueError: the value is outside the range.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an int, got {value!r}")
    if value < low or (high is not None and value > high):
        limit = f"between {low} and {high}" if high is not None else f">= {low}"
        raise ValueError(f"{name} must be {limit}, got {value}")
    return int(value)
