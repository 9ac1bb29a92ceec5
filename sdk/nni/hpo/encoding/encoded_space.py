"""A whole search space, branches included, as points with one coordinate per parameter.

A number lies at a coordinate in [0, 1] (a normal type's in a bell around 0.5), on a logarithmic
axis where its type is logarithmic. Options of a choice of numbers stand in their order, evenly
spaced; of any other choice the coordinate is the position of the option. Where a parameter is not
active its coordinate is `INACTIVE`, so that two points are equal if they mean the same.

A model sees features instead: numbers as they are, and one column per option of the other choices,
such that two options are at distance 1. Source: Hutter and Osborne, A Kernel for Hierarchical
Parameter Spaces, 2013 (inactive parameters at a fixed place); Snoek et al., NIPS 2012 (one column
per option).
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Final

import numpy as np

from nni.hpo.arrays import Bools, Floats, Ints
from nni.hpo.encoding.columns import (
    BELL_WIDTH,
    ChoiceColumn,
    NumericColumn,
    Row,
    configuration_of,
    levels_of,
)
from nni.hpo.encoding.numeric_space import is_finite_number
from nni.hpo.encoding.unit_cube import values_on_axis
from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import Space
from nni.hpo.space.parser import place

INACTIVE: Final = 0.5
_NO_OPTION: Final = -1.0
"""Coordinate of an unordered choice that is not active."""
_HALF: Final = math.sqrt(0.5)
_FEWEST_ORDERED: Final = 3
"""Options from which an order of numbers says more than that two differ."""


@dataclass(frozen=True, slots=True)
class TreeAxis:
    """One parameter of the space, wherever in the tree it stands."""

    path: str
    level: int
    """Index of the level that it belongs to."""
    number: NumericColumn | None
    choice: ChoiceColumn | None
    """Exactly one of the two is given."""
    order: tuple[int, ...] | None
    """Positions of the options of a choice of numbers, least number first; None for others."""
    values: Floats | None
    """`(k,)`, ascending coordinates of all values; None for a continuum and unordered choices."""
    feature: int
    """Its first column among the features."""

    @property
    def options(self) -> int:
        """How many options an unordered choice has; 0 for other axes."""
        if self.choice is None or self.order is not None:
            return 0
        return len(self.choice.domain.options)

    @property
    def width(self) -> int:
        """How many features it has."""
        return max(self.options, 1)


class TreeCube:
    """The points of one search space.

    Args:
        space: of any types.
    """

    def __init__(self, space: Space) -> None:
        self.space: Final = space
        self._levels = levels_of(space)
        self.axes: Final = tuple(self._axes())
        self._parents = {
            branch.index: (index, option)
            for index, axis in enumerate(self.axes)
            if axis.choice is not None
            for option, branch in enumerate(axis.choice.branches)
            if branch is not None
        }
        self.owners: Final[Ints] = np.array(
            [index for index, axis in enumerate(self.axes) for _ in range(axis.width)],
            dtype=np.int64,
        )
        """`(f,)`, the axis that each feature belongs to."""
        self.ordered: Final[Bools] = np.array([axis.options == 0 for axis in self.axes], dtype=bool)
        """`(d,)`, whether neighbouring coordinates are alike."""
        self._bells = [
            index
            for index, axis in enumerate(self.axes)
            if axis.number is not None and not axis.number.bounded
        ]
        self._absent = np.where(self.ordered, INACTIVE, _NO_OPTION)

    def __len__(self) -> int:
        """Return the number of axes."""
        return len(self.axes)

    @property
    def has_branches(self) -> bool:
        """Whether some parameters are active only sometimes."""
        return len(self._levels) > 1

    @property
    def size(self) -> int | None:
        """How many points there are, allowed or not; None if branched or too many."""
        if self.has_branches:
            return None
        sizes = [
            axis.options or (0 if axis.values is None else len(axis.values)) for axis in self.axes
        ]
        return math.prod(sizes) if all(sizes) else None

    def point(self, configuration: JsonValue) -> Floats:
        """Return the `(d,)` point of a configuration.

        Raises:
            ValueError: it lies outside the space.
        """
        return self.point_of(place(self.space, configuration))

    def point_of(self, placed: Mapping[str, JsonValue]) -> Floats:
        """Return the `(d,)` point of active parameters, as `place` gives them."""
        point: Floats = self._absent.copy()
        for index, axis in enumerate(self.axes):
            if axis.path in placed:
                point[index] = _coordinate(axis, placed[axis.path])
        return point

    def configuration(self, point: Floats) -> dict[str, JsonValue]:
        """Return the configuration at a `(d,)` point of the space, as plain Python values."""
        active = self.active(point[None, :])[0]
        numbers: dict[int, list[float]] = {}
        options: dict[int, list[int]] = {}
        for axis, coordinate, here in zip(self.axes, point.tolist(), active.tolist(), strict=True):
            if here and axis.choice is None:
                numbers.setdefault(axis.level, []).append(coordinate)
            elif here:
                options.setdefault(axis.level, []).append(_option(axis, coordinate))
        rows = {
            level: Row(level, tuple(numbers.get(level, ())), tuple(options.get(level, ())))
            for level in {0, *numbers, *options}
        }
        return configuration_of(self._levels, rows)

    def draw_prior(self, rng: Random) -> Floats:
        """Return one `(d,)` point of the prior of the search space, constraints kept."""
        return self.point(self.space.draw(rng))

    def active(self, points: Floats) -> Bools:
        """Return `(m, d)`, whether each parameter is active at `(m, d)` points."""
        levels = {0: np.ones(len(points), dtype=bool)}
        for level in self._levels[1:]:
            parent, option = self._parents[level.index]
            levels[level.index] = levels[self.axes[parent].level] & (points[:, parent] == option)
        if not self.axes:
            return np.ones((len(points), 0), dtype=bool)
        return np.stack([levels[axis.level] for axis in self.axes], axis=1)

    def snap(self, points: Floats) -> Floats:
        """Return the nearest points of the space, for `(m, d)` coordinates of any value."""
        snapped = np.clip(points, 0.0, 1.0)
        for index, axis in enumerate(self.axes):
            if axis.options:
                snapped[:, index] = np.clip(np.round(points[:, index]), 0, axis.options - 1)
            elif axis.values is not None:
                middles = 0.5 * (axis.values[1:] + axis.values[:-1])
                snapped[:, index] = axis.values[np.searchsorted(middles, snapped[:, index])]
        return np.where(self.active(snapped), snapped, self._absent)

    def uniform(self, rng: np.random.Generator, count: int) -> Floats:
        """Return `(count, d)` coordinates of which none is inactive, each as its prior has it."""
        points = rng.random((count, len(self.axes)))
        for index in self._bells:
            points[:, index] = 0.5 + BELL_WIDTH * rng.standard_normal(count)
        for index, axis in enumerate(self.axes):
            if axis.options:
                points[:, index] = np.floor(points[:, index] * axis.options)
        return points

    def stretched(self, shares: Floats) -> Floats:
        """Return the points of the space at `(m, d)` shares of the prior, each in [0, 1)."""
        points = shares.copy()
        for index, axis in enumerate(self.axes):
            if axis.options:
                points[:, index] = np.floor(shares[:, index] * axis.options)
        return self.snap(points)

    def filled(self, points: Floats, rng: np.random.Generator) -> Floats:
        """Return `(m, d)` points with draws of the prior in the place of what is inactive."""
        return np.where(self.active(points), points, self.uniform(rng, len(points)))

    def forced(self, points: Floats, axis: int, option: int) -> Floats:
        """Return the points of the space nearest to filled ones, with an option chosen.

        Args:
            points: `(m, d)`, without inactive coordinates.
            axis: of an unordered choice; the branches that it stands in are chosen with it.
            option: position of one of its options.
        """
        points = points.copy()
        points[:, axis] = option
        while (level := self.axes[axis].level) != 0:
            axis, option = self._parents[level]
            points[:, axis] = option
        return self.snap(points)

    def neighbours(self, point: Floats) -> Floats:
        """Return the points `(m, d)` that differ from one in a single discrete coordinate."""
        found = [np.empty((0, len(self.axes)))]
        for index, here in enumerate(self.active(point[None, :])[0]):
            values = _neighbouring(self.axes[index], float(point[index])) if here else []
            block = np.repeat(point[None, :], len(values), axis=0)
            block[:, index] = values
            found.append(block)
        return self.snap(np.concatenate(found))

    def all_points(self, limit: int) -> Floats | None:
        """Return all points `(m, d)` that are allowed; None if more than `limit`, or branched."""
        if self.size is None or self.size > limit:
            return None
        grids = np.meshgrid(
            *(
                np.arange(axis.options, dtype=np.float64) if axis.values is None else axis.values
                for axis in self.axes
            ),
            indexing="ij",
        )
        points: Floats = np.stack([grid.ravel() for grid in grids], axis=1)
        return self.allowed(points)

    def allows(self, point: Floats) -> bool:
        """Whether a `(d,)` point of the space breaks no constraint."""
        return not self.space.rules or self.space.allows(self.configuration(point))

    def allowed(self, points: Floats) -> Floats:
        """Return those of `(m, d)` points of the space that break no constraint."""
        if not self.space.rules:
            return points
        kept = np.fromiter(map(self.allows, points), dtype=bool, count=len(points))
        allowed: Floats = points[kept]
        return allowed

    def features(self, points: Floats) -> Floats:
        """Return what a model sees of `(m, d)` points, `(m, f)`."""
        features = np.zeros((len(points), len(self.owners)))
        rows = np.arange(len(points))
        for index, axis in enumerate(self.axes):
            if not axis.options:
                features[:, axis.feature] = points[:, index]
                continue
            chosen = points[:, index] >= 0
            columns = axis.feature + points[chosen, index].astype(np.int64)
            features[rows[chosen], columns] = _HALF
        return features

    def _axes(self) -> Iterator[TreeAxis]:
        feature = 0
        for level in self._levels:
            for number in level.numeric:
                path = number.parameter.path
                values = values_on_axis(number) if number.bounded else None
                yield TreeAxis(path, level.index, number, None, None, values, feature)
                feature += 1
            for choice in level.choices:
                axis = _choice_axis(choice, level.index, feature)
                yield axis
                feature += axis.width


def _choice_axis(choice: ChoiceColumn, level: int, feature: int) -> TreeAxis:
    options = choice.domain.options
    path = choice.parameter.path
    if len(options) < _FEWEST_ORDERED or not all(map(is_finite_number, options)):
        return TreeAxis(path, level, None, choice, None, None, feature)
    order = tuple(sorted(range(len(options)), key=lambda position: float(options[position])))  # type: ignore[arg-type] # all are numbers
    return TreeAxis(path, level, None, choice, order, np.linspace(0, 1, len(options)), feature)


def _coordinate(axis: TreeAxis, placed: JsonValue) -> float:
    """Return where a value stands; of a choice the position of the option is placed."""
    if axis.number is not None:
        return axis.number.coordinate(placed)
    if axis.order is not None:
        return axis.order.index(placed) / (len(axis.order) - 1)
    return float(placed)


def _option(axis: TreeAxis, coordinate: float) -> int:
    """Return the position of the option at a coordinate."""
    if axis.order is None:
        return round(coordinate)
    return axis.order[round(coordinate * (len(axis.order) - 1))]


def _neighbouring(axis: TreeAxis, coordinate: float) -> list[float]:
    """Return the next coordinates on either side; of an unordered choice all others."""
    if axis.options:
        return [float(option) for option in range(axis.options) if option != coordinate]
    if axis.values is None:
        return []
    at = int(np.searchsorted(axis.values, coordinate - 1e-12))
    return [float(axis.values[i]) for i in (at - 1, at + 1) if 0 <= i < len(axis.values)]
