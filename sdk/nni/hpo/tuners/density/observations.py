"""Observations of one level of a space, with their ranking."""

from typing import TypeAlias

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.encoding.columns import Level, Row
from nni.hpo.tuners.density.rankings import Outcome, Ranking

_FIRST_CAPACITY = 64
RowKey: TypeAlias = tuple[tuple[float, ...], tuple[int, ...]]
_DIGITS = 9  # of a coordinate; equal values differ by less after a round trip


class Observations:
    """Growing arrays of observed rows, with their ranking.

    Args:
        level: whose rows these are.
        ranking: of their outcomes; holds none yet.
        recognise: whether `has` is to work, which costs memory.
    """

    def __init__(self, level: Level, ranking: Ranking, *, recognise: bool = True) -> None:
        self._points = np.empty((_FIRST_CAPACITY, len(level.numeric)))
        self._options = np.empty((_FIRST_CAPACITY, len(level.choices)), dtype=np.int64)
        self.ranking = ranking
        self._count = 0
        self._seen: set[RowKey] | None = set() if recognise else None

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._count

    def add(self, row: Row, outcome: Outcome) -> None:
        """Append a row to the growing arrays, and its outcome to the ranking."""
        position = self._count
        if position == len(self._points):
            self._points = np.concatenate([self._points, np.empty_like(self._points)])
            self._options = np.concatenate([self._options, np.empty_like(self._options)])
        self._points[position] = row.coordinates
        self._options[position] = row.options
        self._count += 1
        self.ranking.add(position, outcome)
        self.recognise(row)

    def recognise(self, row: Row) -> None:
        """Add an observed or failed row to the set that `has` looks up, if there is one."""
        if self._seen is not None:
            self._seen.add(row_key(row.coordinates, row.options))

    def has(self, key: RowKey) -> bool:
        """Return whether a row with this key was observed or failed."""
        assert self._seen is not None
        return key in self._seen

    def rows(self, positions: list[int]) -> tuple[Floats, Ints]:
        """Return points `(k, d)` and options `(k, c)` of the rows at `positions`."""
        return self._points[positions], self._options[positions]


def row_key(coordinates: tuple[float, ...], options: tuple[int, ...]) -> RowKey:
    """Return a key that is equal for rows of the same configuration."""
    return tuple(round(coordinate, _DIGITS) for coordinate in coordinates), options
