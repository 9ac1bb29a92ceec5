"""Combinations of a space, enumerated by number without being stored.

Parameters with infinitely many values have a grid of quantiles, which each level makes twice as
fine and which keeps the values of the levels before.
"""

import math
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from statistics import NormalDist
from typing import Final

from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import (
    RELATIVE_TOLERANCE,
    Branch,
    ChoiceDomain,
    Domain,
    IntegerDomain,
    NormalDomain,
    Parameter,
    Space,
    UniformDomain,
)


class Grid:
    """Numbered Cartesian product of one level's parameters; the last one changes fastest.

    Args:
        space: of any types.
        level: fineness of the parameters with infinitely many values, from 0.
    """

    def __init__(self, space: Space, level: int = 0) -> None:
        self._space = space
        self._axes = tuple((p.key, _axis(p, level)) for p in space.parameters)
        self.refinable: bool = any(axis.refinable for _, axis in self._axes)
        """True if a higher level may have more combinations."""
        self.size = 1
        """Number of combinations, allowed or not; 1 for a space without parameters."""
        for _, axis in self._axes:
            self.size *= axis.size

    def decode(self, number: int) -> dict[str, JsonValue]:
        """Return a combination by its number, in `[0, size)`, as a dict of values by key."""
        digits: list[int] = []
        for _, axis in reversed(self._axes):
            number, digit = divmod(number, axis.size)
            digits.append(digit)
        pairs = zip(self._axes, reversed(digits), strict=True)
        return {key: axis.value(digit) for (key, axis), digit in pairs}

    def next_allowed(self, number: int) -> int:
        """Return the first number from this one on that is allowed; `size` or more if none is.

        A block of combinations that all break one rule, because they differ in parameters only
        that it does not depend on, is passed over in one step.

        Returns:
            At least `size` if there is none.
        """
        while self._space.rules and number < self.size:
            broken = self._space.broken(self.decode(number))
            if broken is None:
                break
            block = self._block(broken.keys)
            number = (number // block + 1) * block
        return number

    def _block(self, keys: frozenset[str]) -> int:
        """Return how many consecutive combinations share the values of all these keys."""
        block = 1
        for key, axis in reversed(self._axes):
            if key in keys:
                break
            block *= axis.size
        return block

    def encode(self, configuration: object) -> int:
        """Return the number of a combination; raise ValueError if it is not in the grid.

        Raises:
            ValueError: `configuration` is none of them.
        """
        keys = {key for key, _ in self._axes}
        if not isinstance(configuration, dict) or configuration.keys() - {"_name"} != keys:
            raise ValueError(f"must be a dict with keys {sorted(keys)}, got {configuration!r:.200}")
        number = 0
        for key, axis in self._axes:
            number = number * axis.size + axis.digit(configuration[key])
        return number


@dataclass(frozen=True, slots=True)
class _IntegerAxis:
    domain: IntegerDomain
    refinable = False

    @property
    def size(self) -> int:
        return self.domain.upper - self.domain.lower

    def value(self, digit: int) -> int:
        return self.domain.lower + digit

    def digit(self, value: object) -> int:
        return self.domain.check(value) - self.domain.lower


class _StepAxis:
    refinable = False

    def __init__(self, domain: UniformDomain, step: float) -> None:
        self._domain, self._step = domain, step
        self._first, last = domain.steps()
        self.size = last - self._first + 1

    def value(self, digit: int) -> float:
        return self._domain.snap((self._first + digit) * self._step)

    def digit(self, value: object) -> int:
        return round(self._domain.check(value) / self._step) - self._first


class _ChoiceAxis:
    """Axis of a choice: equal options have one place, a branch one for each combination in it."""

    def __init__(self, domain: ChoiceDomain, level: int) -> None:
        self._domain = domain
        self._grids: list[Grid | None] = []
        self._starts: list[int] = []
        self.size = 0
        for position, option in enumerate(domain.options):
            grid = Grid(option.space, level) if isinstance(option, Branch) else None
            self._grids.append(grid)
            self._starts.append(self.size)
            if grid is not None:
                self.size += grid.size
            elif domain.position(option) == position:
                self.size += 1
        self.refinable: bool = any(grid is not None and grid.refinable for grid in self._grids)

    def value(self, digit: int) -> JsonValue:
        # An option without a place has the start of the next one, which is found instead.
        position = bisect_right(self._starts, digit) - 1
        option, grid = self._domain.options[position], self._grids[position]
        if isinstance(option, Branch) and grid is not None:
            return {"_name": option.name, **grid.decode(digit - self._starts[position])}
        return option

    def digit(self, value: object) -> int:
        position = self._domain.position(value)
        grid = self._grids[position]
        return self._starts[position] + (0 if grid is None else grid.encode(value))


class _QuantileAxis:
    """Values at evenly spaced probabilities of the prior, each once, in ascending order."""

    refinable = True

    def __init__(self, domain: UniformDomain | NormalDomain, level: int) -> None:
        parts = 1 << (level + 1)
        self._domain = domain
        if isinstance(domain, UniformDomain):
            found = {_bounded_quantile(domain, part / parts) for part in range(parts + 1)}
        else:
            normal, parts = NormalDist(domain.mu, domain.sigma), 2 * parts
            found = {domain.from_normal(normal.inv_cdf(part / parts)) for part in range(1, parts)}
        self._values = sorted(found)
        self.size = len(self._values)

    def value(self, digit: int) -> float:
        return self._values[digit]

    def digit(self, value: object) -> int:
        number = self._domain.check(value)
        after = bisect_left(self._values, number)
        for place in (after, after - 1):
            if 0 <= place < self.size and math.isclose(
                self._values[place], number, rel_tol=RELATIVE_TOLERANCE, abs_tol=_ABSOLUTE
            ):
                return place
        raise ValueError(f"must be a value of the grid, got {value!r}")


_ABSOLUTE: Final = 1e-300
"""Difference from 0 that counts as none."""


def _bounded_quantile(domain: UniformDomain, probability: float) -> float:
    if probability in {0.0, 1.0}:  # exactly, whatever the logarithm rounds to
        return domain.high if probability else domain.low
    if not domain.log:
        return domain.snap(domain.low + probability * (domain.high - domain.low))
    low, high = math.log(domain.low), math.log(domain.high)
    return domain.snap(math.exp(low + probability * (high - low)))


_Axis = _IntegerAxis | _StepAxis | _ChoiceAxis | _QuantileAxis


def _axis(parameter: Parameter, level: int) -> _Axis:
    domain: Domain = parameter.domain
    if isinstance(domain, IntegerDomain):
        return _IntegerAxis(domain)
    if isinstance(domain, ChoiceDomain):
        return _ChoiceAxis(domain, level)
    if isinstance(domain, UniformDomain) and domain.q is not None:
        return _StepAxis(domain, domain.q)
    return _QuantileAxis(domain, level)
