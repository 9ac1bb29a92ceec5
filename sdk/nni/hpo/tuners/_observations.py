"""The observations of one level of a space, ordered by loss."""

from bisect import bisect_left, insort
from collections import Counter
from typing import TypeAlias

import numpy as np

from nni.hpo.tuners._columns import Level, Row
from nni.hpo.tuners._parzen import Floats, Ints

_FIRST_CAPACITY = 64
_Key: TypeAlias = tuple[tuple[float, ...], tuple[int, ...]]
_DIGITS = 9  # of a coordinate; equal values differ by less after a round trip


class Observations:
    """Growing arrays of rows, and their order from best to worst.

    Equal losses keep the order in which they came. Adding a row costs O(log n) comparisons.

    Args:
        level: whose rows these are.
        recognise: whether `has` is to work, which costs memory.
    """

    def __init__(self, level: Level, *, recognise: bool = True) -> None:
        self._points = np.empty((_FIRST_CAPACITY, len(level.numeric)))
        self._options = np.empty((_FIRST_CAPACITY, len(level.choices)), dtype=np.int64)
        self._order: list[tuple[float, int]] = []
        self._seen: Counter[_Key] | None = Counter() if recognise else None

    def __len__(self) -> int:
        """Return how many rows there are."""
        return len(self._order)

    def add(self, row: Row, loss: float) -> None:
        """Add a row as the newest."""
        index = len(self._order)
        if index == len(self._points):
            self._points = np.concatenate([self._points, np.empty_like(self._points)])
            self._options = np.concatenate([self._options, np.empty_like(self._options)])
        self._points[index] = row.coordinates
        self._options[index] = row.options
        insort(self._order, (loss, index))
        if self._seen is not None:
            self._seen[_key(row.coordinates, row.options)] += 1

    def remove_newest(self, row: Row, loss: float) -> None:
        """Take back the row that was added last, with this loss."""
        del self._order[bisect_left(self._order, (loss, len(self._order) - 1))]
        if self._seen is not None:
            self._seen[_key(row.coordinates, row.options)] -= 1

    def has(self, coordinates: tuple[float, ...], options: tuple[int, ...]) -> bool:
        """Whether a row like this is among the observations."""
        assert self._seen is not None
        return self._seen[_key(coordinates, options)] > 0

    def ranked(self, start: int, stop: int) -> list[int]:
        """Return the positions of the rows with these ranks; the best row has rank 0."""
        return [index for _, index in self._order[start:stop]]

    def rows(self, positions: list[int]) -> tuple[Floats, Ints]:
        """Return points `(k, d)` and options `(k, c)` of the rows at `positions`."""
        return self._points[positions], self._options[positions]


def _key(coordinates: tuple[float, ...], options: tuple[int, ...]) -> _Key:
    return tuple(round(coordinate, _DIGITS) for coordinate in coordinates), options
