"""Probability of success over rows: coordinates of numbers, and options of choices.

A row is what the density models of TPE and BOHB propose; see `feasibility` for the probability.
"""

import math
from collections.abc import Sequence

import numpy as np

from nni.hpo.arrays import Floats, Ints
from nni.hpo.models.feasibility import Feasibility, FeasibilityModel

_OPTION_FEATURE = math.sqrt(0.5)
"""Feature of the option that a row has; two options are at distance 1."""


class RowFeasibility:
    """Rows of ended trials, and the probability of success that follows from them.

    Args:
        numbers: number of coordinates of a row.
        counts: `(c,)`, number of options of each choice.
        safe: see `FeasibilityModel`.
    """

    def __init__(self, numbers: int, counts: Ints, safe: float) -> None:
        self._counts: list[int] = counts.tolist()
        widths = [1] * numbers + self._counts
        self._model = FeasibilityModel(np.repeat(np.arange(len(widths)), widths), safe)
        self._coordinates: list[tuple[float, ...]] = []
        self._options: list[tuple[int, ...]] = []
        self._succeeded: list[bool] = []
        self._any_failed = False

    def add(
        self, coordinates: tuple[float, ...], options: tuple[int, ...], *, succeeded: bool
    ) -> None:
        """Append the row of a trial that has ended."""
        self._coordinates.append(coordinates)
        self._options.append(options)
        self._succeeded.append(succeeded)
        self._any_failed = self._any_failed or not succeeded

    def current(self) -> Feasibility | None:
        """Return the probability by the trials so far; None if they all ended alike."""
        if not self._any_failed:
            return None
        features = self._features(self._coordinates, self._options)
        return self._model.update(features, np.array(self._succeeded))

    def log_weights(self, points: Floats, options: Ints) -> Floats | None:
        """Return the log weights `(m,)` of rows; None if all trials ended alike.

        Args:
            points: `(m, d)`.
            options: `(m, c)`.
        """
        feasibility = self.current()
        if feasibility is None:
            return None
        return feasibility.log_weight(self._of_arrays(points, options))

    def log_probability(self, coordinates: tuple[float, ...], options: tuple[int, ...]) -> float:
        """Return the log probability of success of one row; 0 if all trials ended alike."""
        feasibility = self.current()
        if feasibility is None:
            return 0.0
        return float(feasibility.log_probability(self._features([coordinates], [options]))[0])

    def _features(
        self, coordinates: Sequence[tuple[float, ...]], options: Sequence[tuple[int, ...]]
    ) -> Floats:
        return self._of_arrays(np.array(coordinates, dtype=np.float64), np.array(options))

    def _of_arrays(self, points: Floats, options: Ints) -> Floats:
        """Return the features `(m, f)`: the coordinates, and one column per option."""
        blocks = [points]
        for column, count in zip(options.T, self._counts, strict=True):
            blocks.append(_OPTION_FEATURE * (column[:, None] == np.arange(count)))
        features: Floats = np.concatenate(blocks, axis=1)
        return features
