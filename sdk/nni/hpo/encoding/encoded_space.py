"""Encoding of a search space, branches included: one coordinate per parameter.

A number lies at a coordinate in [0, 1] (a normal type's in a bell around 0.5), on a logarithmic
axis where its type is logarithmic. Options of a choice of three or more numbers stand in their
order, evenly spaced; of any other choice the coordinate is the index of the option. Options that
mean the same are one. The coordinate of an inactive parameter is `INACTIVE` (-1 for an unordered
choice), so that two vectors are equal if they mean the same configuration. A flat space is a tree
with one level.

A model reads features instead: ordered coordinates as they are, and one column per option of the
unordered choices, such that two options are at distance 1.

Shapes: m vectors, d axes (parameters), f features.

Source: Hutter and Osborne, A Kernel for Hierarchical Parameter Spaces, 2013 (inactive parameters at
a fixed place); Snoek et al., NIPS 2012 (one column per option).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

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
from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import Branch, IntegerDomain, Space, UniformDomain
from nni.hpo.space.parser import place

INACTIVE: Final = 0.5
_NO_OPTION: Final = -1.0
"""Coordinate of an unordered choice that is not active."""
_MIDDLE: Final = 0.5
_OPTION_FEATURE: Final = math.sqrt(0.5)
"""Feature of the option that is chosen; two such columns are at distance 1."""
_FEWEST_ORDERED: Final = 3
"""Options from which an order of numbers says more than that two differ."""
_MOST_LISTED: Final = 50_000
"""Values up to which an axis is discrete; more of them are treated as a continuum."""
_FEWEST_SAMPLED: Final = 32
"""Vectors that `EncodedSpace.sample` returns at least where constraints allow little."""
_DIGITS: Final = 9
"""Decimals of a coordinate in a key; a round trip through text changes less."""

VectorKey: TypeAlias = tuple[float, ...]
"""Hashable form of a vector; equal for vectors of the same configuration."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Column of the encoding: a parameter of the space, at any depth of the tree."""

    path: str
    level: int
    """Index of the level of the tree that the parameter belongs to."""
    number: NumericColumn | None
    choice: ChoiceColumn | None
    """Exactly one of the two is given."""
    positions: tuple[int, ...]
    """Positions of the distinct options of a choice, in the order of their coordinates; empty for
    numbers."""
    values: Floats | None
    """`(k,)`, ascending coordinates of all values; None for a continuum and unordered choices."""
    feature: int
    """Index of the parameter's first feature."""

    @property
    def categories(self) -> int:
        """Number of options of an unordered choice; 0 for other axes."""
        return 0 if self.values is not None else len(self.positions)

    @property
    def width(self) -> int:
        """Number of features of the axis."""
        return max(self.categories, 1)


class EncodedSpace:
    """Converter between configurations and fixed-length vectors, inactive parameters included.

    Args:
        search_space: of any types.
    """

    def __init__(self, search_space: Space) -> None:
        self.search_space: Final = search_space
        self._levels = levels_of(search_space)
        self.axes: Final = tuple(self._axes())
        self._parents = {
            branch.index: (index, coordinate)
            for index, axis in enumerate(self.axes)
            if axis.choice is not None
            for coordinate, position in enumerate(axis.positions)
            if (branch := axis.choice.branches[position]) is not None
        }
        self.feature_axes: Final[Ints] = np.array(
            [index for index, axis in enumerate(self.axes) for _ in range(axis.width)],
            dtype=np.int64,
        )
        """`(f,)`, the axis that each feature belongs to."""
        self.ordered: Final[Bools] = np.array(
            [axis.categories == 0 for axis in self.axes], dtype=bool
        )
        """`(d,)`, whether neighbouring coordinates are alike."""
        self._bells = [
            index
            for index, axis in enumerate(self.axes)
            if axis.number is not None and not axis.number.bounded
        ]
        self._inactive = np.where(self.ordered, INACTIVE, _NO_OPTION)
        self._inactive_list: list[float] = self._inactive.tolist()
        self._all_vectors: Floats | None = None

    def __len__(self) -> int:
        """Return the number of axes."""
        return len(self.axes)

    @property
    def has_branches(self) -> bool:
        """True if some parameters are conditional."""
        return len(self._levels) > 1

    @property
    def size(self) -> int | None:
        """Number of vectors, constraints aside; None for a continuum or a space with branches."""
        if self.has_branches:
            return None
        sizes = [
            axis.categories or (0 if axis.values is None else len(axis.values))
            for axis in self.axes
        ]
        return math.prod(sizes) if all(sizes) else None

    def encode(self, configuration: JsonValue) -> Floats:
        """Return a configuration's vector `(d,)`; raise ValueError if it lies outside the space.

        Raises:
            ValueError: it lies outside the space.
        """
        return self.encode_placed(place(self.search_space, configuration))

    def encode_placed(self, placed: Mapping[str, JsonValue]) -> Floats:
        """Return the vector `(d,)` of values given by path; others are inactive.

        Args:
            placed: path to value, as `nni.hpo.space.parser.place` returns it.
        """
        # A list is filled faster than an array, item by item.
        coordinates = [
            _coordinate(axis, placed[axis.path]) if axis.path in placed else inactive
            for axis, inactive in zip(self.axes, self._inactive_list, strict=True)
        ]
        return np.array(coordinates, dtype=np.float64)

    def decode(self, vector: Floats) -> dict[str, JsonValue]:
        """Return the configuration of a `(d,)` vector of the space, as plain Python values."""
        active = self.active(vector[None, :])[0]
        numbers: dict[int, list[float]] = {}
        options: dict[int, list[int]] = {}
        for axis, coordinate, here in zip(self.axes, vector.tolist(), active.tolist(), strict=True):
            if here and axis.choice is None:
                numbers.setdefault(axis.level, []).append(coordinate)
            elif here:
                options.setdefault(axis.level, []).append(_option(axis, coordinate))
        rows = {
            level: Row(level, tuple(numbers.get(level, ())), tuple(options.get(level, ())))
            for level in {0, *numbers, *options}
        }
        return configuration_of(self._levels, rows)

    def middle(self) -> Floats:
        """Return the vector `(d,)` of the middle of all ranges and the first option of choices."""
        vector = np.full((1, len(self.axes)), _MIDDLE)
        for index, axis in enumerate(self.axes):
            if axis.choice is not None:
                vector[0, index] = _coordinate(axis, 0)
        snapped: Floats = self.snap(vector)[0]
        return snapped

    def active(self, vectors: Floats) -> Bools:
        """Return `(m, d)`, whether each parameter is active in `(m, d)` vectors."""
        levels = {0: np.ones(len(vectors), dtype=bool)}
        for level in self._levels[1:]:
            parent, option = self._parents[level.index]
            levels[level.index] = levels[self.axes[parent].level] & (vectors[:, parent] == option)
        if not self.axes:
            return np.ones((len(vectors), 0), dtype=bool)
        return np.stack([levels[axis.level] for axis in self.axes], axis=1)

    def snap(self, vectors: Floats) -> Floats:
        """Return `(m, d)` coordinates rounded and clipped to the space, inactive ones marked so."""
        snapped = np.clip(vectors, 0.0, 1.0)
        for index, axis in enumerate(self.axes):
            if axis.categories:
                snapped[:, index] = np.clip(np.round(vectors[:, index]), 0, axis.categories - 1)
            elif axis.values is not None:
                middles = 0.5 * (axis.values[1:] + axis.values[:-1])
                snapped[:, index] = axis.values[np.searchsorted(middles, snapped[:, index])]
        return np.where(self.active(snapped), snapped, self._inactive)

    def sample_prior(self, rng: Random) -> Floats:
        """Return one vector `(d,)` drawn from the prior of the search space, constraints kept."""
        return self.encode(self.search_space.draw(rng))

    def sample(self, rng: np.random.Generator, count: int) -> Floats:
        """Return up to `count` allowed vectors `(m, d)` of the prior, at least `min(count, 32)`.

        Constraints leave fewer than `count`, but 32 at least.
        """
        vectors = self.allowed(self.snap(self.sample_filled(rng, count)))
        missing = min(count, _FEWEST_SAMPLED) - len(vectors)
        if missing <= 0:
            return vectors
        prior = Random(int(rng.integers(2**63)))
        return np.concatenate([vectors, [self.sample_prior(prior) for _ in range(missing)]])

    def sample_filled(self, rng: np.random.Generator, count: int) -> Floats:
        """Return `(count, d)` draws of the prior, all parameters active, numbers not rounded."""
        vectors = rng.random((count, len(self.axes)))
        for index in self._bells:
            vectors[:, index] = 0.5 + BELL_WIDTH * rng.standard_normal(count)
        for index, axis in enumerate(self.axes):
            if axis.categories:
                vectors[:, index] = np.floor(vectors[:, index] * axis.categories)
        return vectors

    def from_unit_cube(self, shares: Floats) -> Floats:
        """Return the vectors of the space at `(m, d)` shares of each axis, each in [0, 1)."""
        vectors = shares.copy()
        for index, axis in enumerate(self.axes):
            if axis.categories:
                vectors[:, index] = np.floor(shares[:, index] * axis.categories)
        return self.snap(vectors)

    def fill_inactive(self, vectors: Floats, rng: np.random.Generator) -> Floats:
        """Return `(m, d)` vectors with draws of the prior in place of inactive coordinates."""
        return np.where(self.active(vectors), vectors, self.sample_filled(rng, len(vectors)))

    def with_option(self, vectors: Floats, axis: int, option: int) -> Floats:
        """Return filled vectors with an option and its parent branches set, snapped to the space.

        Args:
            vectors: `(m, d)`, without inactive coordinates.
            axis: of an unordered choice; the branches that contain it are chosen as well.
            option: coordinate of one of its options.
        """
        vectors = vectors.copy()
        vectors[:, axis] = option
        while (level := self.axes[axis].level) != 0:
            axis, option = self._parents[level]
            vectors[:, axis] = option
        return self.snap(vectors)

    def neighbours(self, vector: Floats) -> Floats:
        """Return `(m, d)` vectors one step, or another option, away; constraints are not checked.

        An ordered axis contributes the next value on either side, an unordered one all its other
        options. Constraints are not regarded.
        """
        found = [np.empty((0, len(self.axes)))]
        for index, here in enumerate(self.active(vector[None, :])[0]):
            values = _neighbouring(self.axes[index], float(vector[index])) if here else []
            block = np.repeat(vector[None, :], len(values), axis=0)
            block[:, index] = values
            found.append(block)
        return self.snap(np.concatenate(found))

    def all_vectors(self, limit: int) -> Floats | None:
        """Return all allowed vectors `(m, d)`, last axis fastest; None if over `limit` or branched.

        None if there are more than `limit`, those against constraints included, or branches.
        """
        if self.size is None or self.size > limit:
            return None
        if self._all_vectors is None:
            grids = np.meshgrid(
                *(
                    np.arange(axis.categories, dtype=np.float64)
                    if axis.values is None
                    else axis.values
                    for axis in self.axes
                ),
                indexing="ij",
            )
            self._all_vectors = self.allowed(np.stack([grid.ravel() for grid in grids], axis=1))
        return self._all_vectors

    def allows(self, vector: Floats) -> bool:
        """Return whether a `(d,)` vector of the space satisfies all constraints."""
        return not self.search_space.rules or self.search_space.allows(self.decode(vector))

    def allowed(self, vectors: Floats) -> Floats:
        """Return those of `(m, d)` vectors of the space that satisfy all constraints."""
        if not self.search_space.rules:
            return vectors
        kept = np.fromiter(map(self.allows, vectors), dtype=bool, count=len(vectors))
        allowed: Floats = vectors[kept]
        return allowed

    def features(self, vectors: Floats) -> Floats:
        """Return features `(m, f)`: coordinates; sqrt(0.5) for an unordered choice's option."""
        features = np.zeros((len(vectors), len(self.feature_axes)))
        rows = np.arange(len(vectors))
        for index, axis in enumerate(self.axes):
            if not axis.categories:
                features[:, axis.feature] = vectors[:, index]
                continue
            chosen = vectors[:, index] >= 0
            columns = axis.feature + vectors[chosen, index].astype(np.int64)
            features[rows[chosen], columns] = _OPTION_FEATURE
        return features

    def _axes(self) -> Iterator[Axis]:
        feature = 0
        for level in self._levels:
            for number in level.numeric:
                values = _values_on_axis(number) if number.bounded else None
                yield Axis(number.parameter.path, level.index, number, None, (), values, feature)
                feature += 1
            for choice in level.choices:
                axis = _choice_axis(choice, level.index, feature)
                yield axis
                feature += axis.width


def vector_key(vector: Floats) -> VectorKey:
    """Return a vector `(d,)` as a hashable tuple, rounded to 9 decimals."""
    return tuple(np.round(vector, _DIGITS).tolist())


def vector_keys(vectors: Sequence[Floats]) -> set[VectorKey]:
    """Return vectors `(d,)` as a set of hashable tuples, rounded to 9 decimals."""
    return set(map(tuple, np.round(np.array(vectors), _DIGITS).tolist()))


def _choice_axis(choice: ChoiceColumn, level: int, feature: int) -> Axis:
    options, path = choice.domain.options, choice.parameter.path
    # The first of those that mean the same stands for all of them.
    positions = [
        at
        for at, option in enumerate(options)
        if isinstance(option, Branch) or choice.domain.position(option) == at
    ]
    if len(positions) < _FEWEST_ORDERED or not all(map(is_finite_number, options)):
        return Axis(path, level, None, choice, tuple(positions), None, feature)
    positions.sort(key=lambda position: float(options[position]))  # type: ignore[arg-type] # all are numbers
    values = np.linspace(0, 1, len(positions))
    return Axis(path, level, None, choice, tuple(positions), values, feature)


def _coordinate(axis: Axis, placed: JsonValue) -> float:
    """Return the coordinate of a value; of a choice, `placed` is the index of the option."""
    if axis.number is not None:
        return axis.number.coordinate(placed)
    index = axis.positions.index(placed)
    return float(index) if axis.categories else index / (len(axis.positions) - 1)


def _option(axis: Axis, coordinate: float) -> int:
    """Return the index of a choice's option at a coordinate, the nearest one."""
    if axis.categories:
        return axis.positions[round(coordinate)]
    return axis.positions[round(coordinate * (len(axis.positions) - 1))]


def _neighbouring(axis: Axis, coordinate: float) -> list[float]:
    """Return the next coordinates on either side; all others if unordered; [] for a continuum."""
    if axis.categories:
        return [float(option) for option in range(axis.categories) if option != coordinate]
    if axis.values is None:
        return []
    at = int(np.searchsorted(axis.values, coordinate - 1e-12))
    return [float(axis.values[i]) for i in (at - 1, at + 1) if 0 <= i < len(axis.values)]


def _values_on_axis(column: NumericColumn) -> Floats | None:
    """Return a bounded column's ascending coordinates `(k,)`; None for a continuum or too many."""
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
    if last - first + 1 > _MOST_LISTED:
        return None
    values = sorted({domain.snap(step * domain.q) for step in range(first, last + 1)})
    return np.array([column.coordinate(value) for value in values])
