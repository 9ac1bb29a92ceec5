"""Generation of columns: a transformer that learns encodings from a training table.

After generation, select: of many candidates most say the same or nothing, and `GBDTSelector` ranks
them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

import numpy as np
from numpy.typing import NDArray

from nni.feature_engineering._operations import (
    Encoding,
    bucket_edges,
    counts,
    distinct_values,
    keys,
    statistics,
)
from nni.feature_engineering.feature_selector import Column, RandomState, Table
from nni.feature_engineering.generated_feature import GeneratedFeature

__all__ = ["FeatureGenerator"]


class FeatureGenerator:
    """Transformer that learns encodings of columns from a table and computes features by them.

    `fit_transform` is for the training table and `transform` for others. They differ in the
    operation `target`: a training row is encoded by the targets of other rows only, since its own
    would leak into it.

    Args:
        features: features to compute, in the order of the columns of the result.
        folds: parts of the training table; the rows of each are encoded by the targets of the
            others.
        buckets: number of buckets of `histstat`.
        random_state: seed of the parts.

    Raises:
        ValueError: two features have the same name, or a number is too small.

    Examples:
        >>> generator = FeatureGenerator([GeneratedFeature("count", ("city",))])
        >>> generator.fit_transform({"city": ["Rome", "Oslo", "Rome"]}).ravel().tolist()
        [2.0, 1.0, 2.0]
        >>> generator.transform({"city": ["Oslo", "Lima"]}).ravel().tolist()
        [1.0, 0.0]
    """

    def __init__(
        self,
        features: Iterable[GeneratedFeature],
        *,
        folds: int = 5,
        buckets: int = 10,
        random_state: RandomState = 0,
    ) -> None:
        self.features = tuple(features)
        if len({feature.name for feature in self.features}) < len(self.features):
            raise ValueError("features must have names of their own, got one twice")
        for name, value in (("folds", folds), ("buckets", buckets)):
            if value < 2:  # noqa: PLR2004 - one part has no other
                raise ValueError(f"{name} must be >= 2, got {value}")
        self.folds = folds
        self.buckets = buckets
        self.random_state = random_state
        self._encodings: tuple[Encoding, ...] | None = None
        self._edges: dict[str, NDArray[np.float64]] = {}

    def fit(self, table: Table, target: Column = None) -> Self:
        """Learn bucket edges and encodings from a training table and target; return self.

        Args:
            table: columns by name: a data frame or a dict of lists or arrays.
            target: `(n_rows,)`, numbers, classes as 0 and 1; None if no feature needs it.

        Returns:
            The generator itself.

        Raises:
            ValueError: a feature needs the target, or a column is missing.
        """
        for feature in self.features:
            if feature.operation == "histstat":
                self._edges[feature.columns[0]] = bucket_edges(
                    _numbers(table, feature.columns[0]), self.buckets
                )
        numbers = None if target is None else np.asarray(target, dtype=np.float64)
        self._encodings = tuple(self._learn(one, table, numbers) for one in self.features)
        return self

    def transform(self, table: Table) -> NDArray[np.float64]:
        """Return a new table's features, `(n_rows, n_features)`, by the learned encodings.

        Args:
            table: columns by name, those of the training table.

        Returns:
            `(n_rows, n_features)`.

        Raises:
            ValueError: `fit` was not called, or a column is missing.
        """
        if self._encodings is None:
            raise ValueError("transform needs a fitted generator: call fit or fit_transform first")
        columns = [
            encoding.of(self._keys(feature, table))
            for feature, encoding in zip(self.features, self._encodings, strict=True)
        ]
        return np.column_stack(columns) if columns else np.empty((0, 0))

    def fit_transform(self, table: Table, target: Column = None) -> NDArray[np.float64]:
        """Learn the encodings; return the training table's features, `target` out of fold.

        Args:
            table: columns by name: a data frame or a dict of lists or arrays.
            target: `(n_rows,)`, numbers; None if no feature needs it.

        Returns:
            `(n_rows, n_features)`; `target` is computed from the other folds.

        Raises:
            ValueError: a feature needs the target, or a column is missing.
        """
        found = self.fit(table, target).transform(table)
        for position, feature in enumerate(self.features):
            if feature.operation == "target":
                found[:, position] = self._out_of_fold(feature, table, target)
        return found

    def get_feature_names_out(self, input_features: object = None) -> NDArray[np.object_]:
        """Return the names of the generated columns.

        Args:
            input_features: ignored; there for the interface of scikit-learn.

        Returns:
            `(n_features,)`.
        """
        return np.array([feature.name for feature in self.features], dtype=object)

    def _learn(
        self, feature: GeneratedFeature, table: Table, target: NDArray[np.float64] | None
    ) -> Encoding:
        """Return the encoding of a feature, learned from all rows of a table."""
        names = self._keys(feature, table)
        match feature.operation:
            case "count" | "crosscount":
                return counts(names)
            case "nunique":
                return distinct_values(names, keys(_column(table, feature.columns[0])))
            case "aggregate" | "histstat":
                numbers = _numbers(table, feature.columns[0])
                return statistics(names, numbers, feature.statistic or "")
            case "target":
                if target is None or len(target) != len(names):
                    raise ValueError(f"{feature.name} needs a target for each row of the table")
                return statistics(names, target, "mean")

    def _keys(self, feature: GeneratedFeature, table: Table) -> list[object]:
        """Return each row's key in a feature's encoding: column values, or the bucket's number."""
        match feature.operation:
            case "crosscount":
                return keys(*(_column(table, name) for name in feature.columns))
            case "histstat":
                name = feature.columns[0]
                return keys(np.searchsorted(self._edges[name], _numbers(table, name)))
            case "count" | "target" | "aggregate" | "nunique":
                return keys(_column(table, feature.columns[-1]))

    def _out_of_fold(
        self, feature: GeneratedFeature, table: Table, target: Column
    ) -> NDArray[np.float64]:
        """Return each row's mean target by key, computed from the rows of other folds only."""
        names = self._keys(feature, table)
        numbers = np.asarray(target, dtype=np.float64)
        rows = np.random.default_rng(self.random_state).permutation(len(names))
        found = np.full(len(names), numbers.mean())
        for fold in np.array_split(rows, min(self.folds, len(names))):
            others = np.setdiff1d(rows, fold)
            if len(others):
                encoding = statistics([names[row] for row in others], numbers[others], "mean")
                found[fold] = encoding.of([names[row] for row in fold])
        return found


def _column(table: Mapping[str, Column], name: str) -> Column:
    """Return a column of a table; raise ValueError if there is none of this name.

    Raises:
        ValueError: there is none of this name.
    """
    try:
        return table[name]
    except KeyError as error:
        raise ValueError(f"the table has no column {name!r}") from error


def _numbers(table: Mapping[str, Column], name: str) -> NDArray[np.float64]:
    """Return a column as finite numbers; raise ValueError if a value is missing or no number.

    Raises:
        ValueError: a value is missing or is no number.
    """
    try:
        numbers = np.asarray(_column(table, name), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column {name!r} must hold numbers: {error}") from error
    if not np.isfinite(numbers).all():
        raise ValueError(f"column {name!r} has NaN or infinite values: impute them first")
    return numbers
