"""Encoding of a search space as numeric columns, one table per level of its tree.

The numeric parameters of a `Level` become coordinates whose prior is uniform on [0, 1] (or normal
around 0.5 for the normal types), its choices become option positions. A branch of a choice has a
level of its own, so that a model of a level is fitted to configurations in which all its parameters
were active.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import (
    Branch,
    ChoiceDomain,
    IntegerDomain,
    NormalDomain,
    NumericDomain,
    Parameter,
    Space,
)

BELL_WIDTH = 0.25
"""Standard deviation of a normal type's coordinate: two of them on either side fill [0, 1]."""


@dataclass(frozen=True, slots=True)
class NumericColumn:
    """Numeric parameter as a column: how its values map to a coordinate and back."""

    parameter: Parameter
    domain: NumericDomain
    origin: float
    """Value at coordinate 0, on the (perhaps logarithmic) scale of the prior."""
    extent: float
    """Change of the value per unit of the coordinate, on that scale; 0 for a range of one value."""
    log: bool
    bounded: bool
    """True if the coordinate lies in [0, 1]."""
    step: float
    """Distance of neighbouring values in the coordinate; 0 for continuous or uneven ones."""

    def coordinate(self, value: float) -> float:
        """Return the coordinate of a value of the domain; 0.5 in a range of one value."""
        if self.extent == 0:
            return 0.5
        if self.log:
            if value <= 0:  # a quantised type may round to 0, which has no logarithm
                assert self.domain.q  # type: ignore[union-attr] # only quantised domains hold 0
                value = self.domain.q / 2  # type: ignore[union-attr] # see above
            value = math.log(value)
        return (value - self.origin) / self.extent

    def grid_offset(self) -> float:
        """Return a coordinate that lies on the grid of a stepped column; 0 without steps."""
        if self.step == 0:
            return 0.0
        if isinstance(self.domain, IntegerDomain):
            return 0.5 * self.step
        return -self.origin / self.extent  # of the value 0, which is a multiple of every step

    def value(self, coordinate: float) -> int | float:
        """Return the value at a coordinate, rounded and clipped to the parameter's domain."""
        raw = self.origin + coordinate * self.extent
        if isinstance(self.domain, IntegerDomain):
            return min(max(round(raw), self.domain.lower), self.domain.upper - 1)
        if isinstance(self.domain, NormalDomain):
            return self.domain.from_normal(raw)
        return self.domain.snap(math.exp(raw) if self.log else raw)


@dataclass(frozen=True, slots=True)
class ChoiceColumn:
    """Choice parameter of a level, with the level that each option opens."""

    parameter: Parameter
    domain: ChoiceDomain
    branches: tuple["Level | None", ...]
    """Per option the level of its parameters; None for an option without any."""

    @property
    def opens_branches(self) -> bool:
        """True if any option has a level of its own."""
        return any(branch is not None for branch in self.branches)


@dataclass(frozen=True, slots=True)
class Level:
    """Group of parameters that are always active together: the root or one branch."""

    index: int
    """Counts from 0, the root, over all levels of the space."""
    parameters: tuple[Parameter, ...]
    numeric: tuple[NumericColumn, ...]
    choices: tuple[ChoiceColumn, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """Coordinates and option numbers of a configuration's parameters on one level."""

    level: int
    coordinates: tuple[float, ...]
    options: tuple[int, ...]


def levels_of(space: Space) -> tuple[Level, ...]:
    """Return all levels of a space, the root first."""
    levels: list[Level | None] = []
    _add_level(space, levels)
    return tuple(level for level in levels if level is not None)


def _add_level(space: Space, levels: list[Level | None]) -> Level:
    index = len(levels)
    levels.append(None)  # the root comes first, though its branches are needed to build it
    numeric: list[NumericColumn] = []
    choices: list[ChoiceColumn] = []
    for parameter in space.parameters:
        domain = parameter.domain
        if isinstance(domain, ChoiceDomain):
            branches = tuple(
                _add_level(branch.space, levels) if branch is not None else None
                for branch in domain.branches()
            )
            choices.append(ChoiceColumn(parameter, domain, branches))
        else:
            numeric.append(_numeric_column(parameter, domain))
    level = Level(index, space.parameters, tuple(numeric), tuple(choices))
    levels[index] = level
    return level


def _numeric_column(parameter: Parameter, domain: NumericDomain) -> NumericColumn:
    if isinstance(domain, IntegerDomain):
        count = domain.upper - domain.lower
        # Every integer has a bin of the same width; coordinate 0 is the left edge of the first.
        return NumericColumn(
            parameter,
            domain,
            origin=domain.lower - 0.5,
            extent=float(count),
            log=False,
            bounded=True,
            step=1 / count,
        )
    if isinstance(domain, NormalDomain):
        extent = domain.sigma / BELL_WIDTH
        step = domain.q / extent if domain.q is not None and not domain.log else 0.0
        return NumericColumn(
            parameter,
            domain,
            origin=domain.mu - 0.5 * extent,
            extent=extent,
            log=domain.log,
            bounded=False,
            step=step,
        )
    low, high = domain.low, domain.high
    if domain.log:
        low, high = math.log(low), math.log(high)
    extent = high - low
    step = domain.q / extent if domain.q is not None and not domain.log and extent > 0 else 0.0
    return NumericColumn(
        parameter, domain, origin=low, extent=extent, log=domain.log, bounded=True, step=step
    )


def rows_of(levels: tuple[Level, ...], placed: Mapping[str, JsonValue]) -> list[Row]:
    """Return the rows of a configuration on its active levels, the root's first.

    Args:
        levels: of the space.
        placed: path to value, as `nni.hpo.space.parser.place` returns it.
    """
    rows: list[Row] = []
    active: list[Level] = [levels[0]]
    while active:
        level = active.pop()
        options = tuple([placed[column.parameter.path] for column in level.choices])
        coordinates = tuple(
            [column.coordinate(placed[column.parameter.path]) for column in level.numeric]
        )
        rows.append(Row(level.index, coordinates, options))
        for column, option in zip(level.choices, options, strict=True):
            branch = column.branches[option]
            if branch is not None:
                active.append(branch)
    return rows


def configuration_of(levels: tuple[Level, ...], rows: Mapping[int, Row]) -> dict[str, JsonValue]:
    """Return the configuration of the rows by level; the inverse of `rows_of`.

    A branch without a row has only its name.
    """
    return _values(levels[0], rows)


def _values(level: Level, rows: Mapping[int, Row]) -> dict[str, JsonValue]:
    row = rows[level.index]
    values: dict[str, JsonValue] = {}
    for number, coordinate in zip(level.numeric, row.coordinates, strict=True):
        values[number.parameter.key] = number.value(coordinate)
    for choice, option in zip(level.choices, row.options, strict=True):
        values[choice.parameter.key] = _option_value(choice, option, rows)
    return {parameter.key: values[parameter.key] for parameter in level.parameters}


def _option_value(choice: ChoiceColumn, option: int, rows: Mapping[int, Row]) -> JsonValue:
    chosen = choice.domain.options[option]
    branch = choice.branches[option]
    if isinstance(chosen, Branch) and branch is not None:
        inner = _values(branch, rows) if branch.index in rows else {}
        return {"_name": chosen.name, **inner}
    return chosen
