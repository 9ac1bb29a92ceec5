"""Choice of columns by their scores: units of columns, their number, and the elbow of a curve."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["ColumnUnits", "elbow", "selected_columns"]

_logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ColumnUnits:
    """Partition of the columns into units that are selected as a whole."""

    unit: NDArray[np.intp]
    """`(n_features,)`, position of each column's unit."""
    sizes: NDArray[np.intp]
    """`(n_units,)`, number of columns."""

    @classmethod
    def of_groups(cls, groups: object, n_features: int) -> ColumnUnits:
        """Return the units of columns with equal labels; without labels one unit per column.

        Args:
            groups: `(n_features,)`, a label for each column; None for units of one column each.
            n_features: number of columns.

        Raises:
            ValueError: there is not one label per column.
        """
        if groups is None:
            return cls(np.arange(n_features), np.ones(n_features, dtype=np.intp))
        labels = np.asarray(groups)
        if labels.shape != (n_features,):
            raise ValueError(
                f"groups must have one label for each of the {n_features} columns, "
                f"got the shape {labels.shape}"
            )
        _, unit, sizes = np.unique(labels, return_inverse=True, return_counts=True)
        return cls(unit, sizes)

    def best(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the largest score in each unit."""
        found = np.full(len(self.sizes), -np.inf)
        np.maximum.at(found, self.unit, scores)
        return found


def elbow(values: NDArray[np.float64]) -> int:
    """Return how many of the descending values lie before the sharpest bend of their curve.

    The bend is the point farthest from the straight line through the first and the last value:
    below it the first of the low values, above it the last of the high ones.

    Examples:
        >>> elbow(np.array([10.0, 9.0, 8.0, 1.0, 0.5, 0.4]))
        3
    """
    if len(values) <= 2:  # noqa: PLR2004 - two points have no bend
        return len(values)
    line = np.linspace(values[0], values[-1], len(values))
    bend = int(np.argmax(np.abs(line - values)))
    return max(1, bend if values[bend] < line[bend] else bend + 1)


def selected_columns(
    scores: NDArray[np.float64],
    units: ColumnUnits,
    n_features: int | None,
    max_features: int | None,
) -> list[int]:
    """Return columns to keep, best first: `n_features`, up to the elbow, or all scored above 0.

    Args:
        scores: `(n_features,)`; columns above 0 are worth keeping, constant ones are `-inf`.
        units: partition of the columns.
        n_features: number of columns; a unit that begins below it is returned whole.
        max_features: upper bound, below which the elbow of the scores decides.

    Returns:
        Positions, sorted by the score of the unit, then of the column, then by position. With
        neither number all units above 0, at least the best one.
    """
    of_units = units.best(scores)
    ranking = np.argsort(-of_units, kind="stable")
    if n_features is not None:
        kept = ranking[: _covering(units.sizes[ranking], n_features)]
        if (total := int(units.sizes[kept].sum())) > n_features:
            _logger.info(
                "%d columns instead of %d are selected: no group is split", total, n_features
            )
    elif max_features is not None:
        fitting = int(np.searchsorted(units.sizes[ranking].cumsum(), max_features, side="right"))
        finite = int(np.isfinite(of_units).sum())
        shown = of_units[ranking[: max(1, min(fitting + 1, finite))]]
        kept = ranking[: max(1, min(fitting, elbow(shown)))]
    else:
        kept = ranking[: max(1, int((of_units > 0).sum()))]
    order = np.lexsort((np.arange(len(scores)), -scores, _places(kept, len(ranking))[units.unit]))
    return [int(column) for column in order[: int(units.sizes[kept].sum())]]


def _covering(sizes: NDArray[np.intp], n_features: int) -> int:
    """Return how many units it takes to have at least that many columns."""
    return int(np.searchsorted(sizes.cumsum(), n_features)) + 1


def _places(kept: NDArray[np.intp], n_units: int) -> NDArray[np.intp]:
    """Return the rank of each unit among those kept; `n_units` for the others."""
    places = np.full(n_units, n_units, dtype=np.intp)
    places[kept] = np.arange(len(kept))
    return places
