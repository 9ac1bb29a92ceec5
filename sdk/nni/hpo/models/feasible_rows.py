"""Probability of success over rows: coordinates of numbers, and options of choices.

A row is what the density models of TPE and BOHB propose; see `feasibility` for the probability,
which is loaded with the first failure: most searches have none.
"""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from nni.hpo.arrays import Floats, Ints

if TYPE_CHECKING:
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
        self._widths = [1] * numbers + self._counts
        self._safe = safe
        self._model: FeasibilityModel | None = None
        """None while no trial has failed."""
        self._feasibility: Feasibility | None = None
        """Of the first `_known` trials."""
        self._known = 0
        self._coordinates: list[tuple[float, ...]] = []
        self._options: list[tuple[int, ...]] = []
        self._succeeded: list[bool] = []

    def add(
        self, coordinates: tuple[float, ...], options: tuple[int, ...], *, succeeded: bool
    ) -> None:
        """Append an ended trial's row and outcome; the first failure creates the model."""
        self._coordinates.append(coordinates)
        self._options.append(options)
        self._succeeded.append(succeeded)
        if self._model is None and not succeeded:
            from nni.hpo.models.feasibility import FeasibilityModel

            axes = np.repeat(np.arange(len(self._widths)), self._widths)
            self._model = FeasibilityModel(axes, self._safe)

    def current(self) -> "Feasibility | None":
        """Return the model of success; None if all trials ended alike or rows do not matter."""
        if self._model is not None and self._known < len(self._succeeded):
            features = self._features(self._coordinates, self._options)
            self._feasibility = self._model.update(features, np.array(self._succeeded))
            self._known = len(self._succeeded)
        return self._feasibility

    def log_weights(self, points: Floats, options: Ints) -> Floats | None:
        """Return log weights `(m,)` of rows; None if all trials ended alike or rows do not matter.

        Args:
            points: `(m, d)`.
            options: `(m, c)`.
        """
        feasibility = self.current()
        if feasibility is None:
            return None
        return feasibility.log_weight(self._of_arrays(points, options))

    def log_probability(self, coordinates: tuple[float, ...], options: tuple[int, ...]) -> float:
        """Return a row's log probability of success; 0 if all ended alike or rows do not matter."""
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
