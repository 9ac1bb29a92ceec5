"""A flat search space as the unit cube: one axis per parameter, each coordinate in [0, 1].

Only bounded types have a place in the cube. Logarithmic types lie on a logarithmic axis; integers
and steps lie at the coordinates of their values; the numbers of a choice stand in their order, as
far apart as each other; other options stand in the order of the space.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, Protocol

import numpy as np

from nni.hpo.arrays import Bools, Floats
from nni.hpo.encoding.columns import NumericColumn, levels_of
from nni.hpo.encoding.numeric_space import is_finite_number
from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import ChoiceDomain, IntegerDomain, Space, UniformDomain, same_value
from nni.hpo.space.parser import place

_MOST_LISTED: Final = 50_000
"""Values up to which an axis is treated as discrete; more of them are as good as a continuum."""

_LEAST_DRAWN: Final = 32
"""Points that a draw of many gives at least where little is allowed."""

_DIGITS: Final = 9
"""Of a coordinate that tells points apart; a trip through text changes less."""

PointKey = tuple[float, ...]
"""Equal for coordinates that stand for the same configuration."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One parameter and the coordinates of its values."""

    key: str
    column: NumericColumn | None
    """Of a number; None for a choice."""
    options: tuple[JsonValue, ...]
    """Of a choice, in the order in which they stand; empty for numbers."""
    ordered: bool
    """Whether neighbours are alike; false for a choice of anything but numbers."""
    levels: Floats | None
    """`(k,)`, ascending coordinates of all values; None for a continuum."""

    def coordinate(self, value: JsonValue) -> float:
        """Return where a value stands; a choice is told by the option itself."""
        if self.column is not None:
            return self.column.coordinate(value)
        # Not `index`: to Python, true equals 1.
        position = next(i for i, option in enumerate(self.options) if same_value(option, value))
        return _spread(position, len(self.options))

    def value(self, coordinate: float) -> JsonValue:
        """Return the value at a coordinate, the nearest one if there is none."""
        if self.column is not None:
            return self.column.value(coordinate)
        count = len(self.options)
        return self.options[min(max(round(coordinate * (count - 1)), 0), count - 1)]

    def snap(self, coordinates: Floats) -> Floats:
        """Return the coordinates of the nearest values."""
        if self.levels is None:
            return coordinates
        middles = 0.5 * (self.levels[1:] + self.levels[:-1])
        snapped: Floats = self.levels[np.searchsorted(middles, coordinates)]
        return snapped


class UnitCube:
    """The points of one search space.

    Args:
        space: flat, with bounded types only.
    """

    def __init__(self, space: Space) -> None:
        self.space: Final = space
        (level,) = levels_of(space)
        columns = {column.parameter.key: column for column in level.numeric}
        self.axes: Final = tuple(
            _choice_axis(parameter.key, parameter.domain)
            if isinstance(parameter.domain, ChoiceDomain)
            else _number_axis(columns[parameter.key])
            for parameter in space.parameters
        )
        self._all_points: Floats | None = None

    def __len__(self) -> int:
        """Return the number of axes."""
        return len(self.axes)

    def first(self) -> Floats:
        """Return the `(d,)` point of the middle of all ranges and the first option of choices."""
        start = np.full((1, len(self.axes)), 0.5)
        for column, parameter in enumerate(self.space.parameters):
            if isinstance(parameter.domain, ChoiceDomain):
                start[0, column] = self.axes[column].coordinate(parameter.domain.options[0])
        snapped: Floats = self.snap(start)[0]
        return snapped

    @property
    def size(self) -> int | None:
        """How many points there are, allowed or not; None if too many to be told apart."""
        if any(axis.levels is None for axis in self.axes):
            return None
        return math.prod(len(axis.levels) for axis in self.axes if axis.levels is not None)

    def point(self, configuration: JsonValue) -> Floats:
        """Return the `(d,)` point of a configuration.

        Raises:
            ValueError: it lies outside the space.
        """
        placed = place(self.space, configuration)
        coordinates = []
        for parameter, axis in zip(self.space.parameters, self.axes, strict=True):
            value: JsonValue = placed[parameter.path]
            if isinstance(parameter.domain, ChoiceDomain):
                value = parameter.domain.options[value]
            coordinates.append(axis.coordinate(value))
        return np.array(coordinates, dtype=np.float64)

    def configuration(self, point: Floats) -> dict[str, JsonValue]:
        """Return the configuration nearest to a `(d,)` point, as plain Python values."""
        return {axis.key: axis.value(float(x)) for axis, x in zip(self.axes, point, strict=True)}

    def snap(self, points: Floats) -> Floats:
        """Return the nearest points of the space, for `(m, d)` points of the cube."""
        snapped = np.clip(points, 0.0, 1.0)
        for column, axis in enumerate(self.axes):
            snapped[:, column] = axis.snap(snapped[:, column])
        return snapped

    def draw(self, rng: np.random.Generator, count: int) -> Floats:
        """Return `(count, d)` points, each value of a discrete axis as likely as its share.

        Constraints leave fewer of them, but a few at least.
        """
        points = self.allowed(self.snap(rng.random((count, len(self.axes)))))
        missing = min(count, _LEAST_DRAWN) - len(points)
        if missing <= 0:
            return points
        prior = Random(int(rng.integers(2**63)))
        return np.concatenate([points, [self.draw_prior(prior) for _ in range(missing)]])

    def allows(self, point: Floats) -> bool:
        """Whether a `(d,)` point of the space breaks no constraint."""
        return not self.space.rules or self.space.allows(self.configuration(point))

    def allowed(self, points: Floats) -> Floats:
        """Return those of `(m, d)` points of the space that break no constraint."""
        if not self.space.rules:
            return points
        return points[self.allowed_mask(points)]

    def allowed_mask(self, points: Floats) -> Bools:
        """Return `(m,)`, true where a point of the space breaks no constraint."""
        if not self.space.rules:
            return np.ones(len(points), dtype=bool)
        return np.fromiter(map(self.allows, points), dtype=bool, count=len(points))

    def draw_prior(self, rng: Random) -> Floats:
        """Return one `(d,)` point of the prior of the search space."""
        return self.point(self.space.draw(rng))

    def all_points(self, limit: int) -> Floats | None:
        """Return all points `(size, d)` that are allowed, the last axis fastest.

        None if there are more than `limit` with those that are not.
        """
        if self.size is None or self.size > limit:
            return None
        if self._all_points is None:
            grids = np.meshgrid(
                *(axis.levels for axis in self.axes if axis.levels is not None), indexing="ij"
            )
            self._all_points = self.allowed(np.stack([grid.ravel() for grid in grids], axis=1))
        return self._all_points

    def neighbours(self, point: Floats) -> Floats:
        """Return the points `(m, d)` that differ from one in a single discrete coordinate.

        An ordered axis gives the next value on either side, an unordered one all its other values.
        """
        found = [np.empty((0, len(self.axes)))]
        for column, axis in enumerate(self.axes):
            if axis.levels is None:
                continue
            at = int(np.searchsorted(axis.levels, point[column] - 1e-12))
            others = [at - 1, at + 1] if axis.ordered else range(len(axis.levels))
            keep = [other for other in others if other != at and 0 <= other < len(axis.levels)]
            block = np.repeat(point[None, :], len(keep), axis=0)
            block[:, column] = axis.levels[keep]
            found.append(block)
        return np.concatenate(found)


def point_key(point: Floats) -> PointKey:
    """Return what is equal for equal points `(d,)`."""
    return tuple(np.round(point, _DIGITS).tolist())


def point_keys(points: Sequence[Floats]) -> set[PointKey]:
    """Return the keys of many points at once."""
    return set(map(tuple, np.round(np.array(points), _DIGITS).tolist()))


class Cube(Protocol):
    """Points of a search space as rows of numbers."""

    def allows(self, point: Floats) -> bool:
        """Whether a `(d,)` point of the space breaks no constraint."""
        ...


def best_free(cube: Cube, points: Floats, ratings: Floats, taken: set[PointKey]) -> Floats | None:
    """Return the allowed point `(d,)` with the greatest rating that is not taken.

    Args:
        cube: the space.
        points: `(m, d)` points of it.
        ratings: `(m,)`; of equal ones the first point wins.
        taken: keys of the points that must not be returned.

    Returns:
        None if there is none.
    """
    for index in np.argsort(-ratings, kind="stable"):
        if point_key(points[index]) not in taken and cube.allows(points[index]):
            chosen: Floats = points[index]
            return chosen
    return None


def _spread(position: int, count: int) -> float:
    return 0.5 if count == 1 else position / (count - 1)


def _choice_axis(key: str, domain: ChoiceDomain) -> Axis:
    numeric = all(map(is_finite_number, domain.options))
    options: list[JsonValue] = []
    for position, option in enumerate(domain.options):
        if domain.position(option) == position:  # the first of those that mean the same
            options.append(option)
    if numeric:
        options.sort(key=float)
    levels = np.array([_spread(position, len(options)) for position in range(len(options))])
    return Axis(key, None, tuple(options), numeric, levels)


def _number_axis(column: NumericColumn) -> Axis:
    return Axis(column.parameter.key, column, (), ordered=True, levels=values_on_axis(column))


def values_on_axis(column: NumericColumn) -> Floats | None:
    """Return `(k,)`, the ascending coordinates of a bounded column; None for a continuum."""
    domain = column.domain
    if column.extent == 0:
        return np.array([0.5])
    if isinstance(domain, IntegerDomain):
        count = domain.upper - domain.lower
        return None if count > _MOST_LISTED else (np.arange(count) + 0.5) / count
    assert isinstance(domain, UniformDomain)
    if domain.q is None:
        return None
    first, last = domain.steps()
    if last - first > _MOST_LISTED:
        return None
    values = sorted({domain.snap(step * domain.q) for step in range(first, last + 1)})
    return np.array([column.coordinate(value) for value in values])
