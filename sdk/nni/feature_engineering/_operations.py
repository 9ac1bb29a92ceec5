"""Encodings of columns, learned from one table and applied to another."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nni.feature_engineering.feature_selector import Column

__all__ = [
    "Encoding",
    "Operation",
    "Statistic",
    "bucket_edges",
    "counts",
    "distinct_values",
    "keys",
    "statistics",
]

Operation: TypeAlias = Literal["count", "target", "crosscount", "aggregate", "nunique", "histstat"]
"""What is computed from columns."""
Statistic: TypeAlias = Literal["min", "max", "mean", "var", "median"]
"""Summary of numbers."""

_SUMMARIES: Final[Mapping[str, Callable[[NDArray[np.float64]], float]]] = {
    "min": np.min,
    "max": np.max,
    "mean": np.mean,
    "var": np.var,
    "median": np.median,
}


@dataclass(frozen=True, slots=True)
class Encoding:
    """Map of key to number, with a default for unknown keys."""

    numbers: Mapping[object, float]
    """Numbers by key."""
    unknown: float
    """Number of keys that were not in the table the encoding was learned from."""

    def of(self, names: list[object]) -> NDArray[np.float64]:
        """Return the numbers of keys, `(n_rows,)`."""
        return np.array([self.numbers.get(name, self.unknown) for name in names], dtype=np.float64)


def keys(*columns: Column) -> list[object]:
    """Return a hashable key for each row: the value, or the tuple of the values.

    Args:
        *columns: columns of one length. A missing value (NaN, None, or NA of pandas) is a
            category like others.

    Examples:
        >>> keys(["a", "b"], [1, 2])
        [('a', 1), ('b', 2)]
        >>> keys([1.0, float("nan")])
        [1.0, None]
    """
    plain = [[_value(value) for value in np.asarray(column).tolist()] for column in columns]
    return list(plain[0]) if len(plain) == 1 else list(zip(*plain, strict=True))


def _value(value: object) -> object:
    """Return a value, None for a missing one: NaN and NaT differ from themselves, NA is unknown."""
    same: object = operator.eq(value, value)
    return value if isinstance(same, bool | np.bool_) and same else None


def counts(names: list[object]) -> Encoding:
    """Return the encoding of keys by how often each occurs, 0 for unknown ones."""
    found: dict[object, float] = {}
    for name in names:
        found[name] = found.get(name, 0.0) + 1.0
    return Encoding(found, 0.0)


def statistics(names: list[object], numbers: NDArray[np.float64], statistic: str) -> Encoding:
    """Return the encoding of keys by a statistic of their numbers; unknown ones get that of all.

    Args:
        names: key of each row.
        numbers: `(n_rows,)`, number of each row.
        statistic: min, max, mean, var or median.
    """
    summary = _SUMMARIES[statistic]
    rows: dict[object, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name, []).append(row)
    found = {name: float(summary(numbers[chosen])) for name, chosen in rows.items()}
    return Encoding(found, float(summary(numbers)))


def distinct_values(names: list[object], values: list[object]) -> Encoding:
    """Return the encoding of keys by their number of distinct values, 0 for unknown ones."""
    found: dict[object, set[object]] = {}
    for name, value in zip(names, values, strict=True):
        found.setdefault(name, set()).add(value)
    return Encoding({name: float(len(one)) for name, one in found.items()}, 0.0)


def bucket_edges(numbers: NDArray[np.float64], buckets: int) -> NDArray[np.float64]:
    """Return inner edges of buckets that hold about as many of the numbers each."""
    return np.unique(np.quantile(numbers, np.linspace(0, 1, buckets + 1)[1:-1]))
