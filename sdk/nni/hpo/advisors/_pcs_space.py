"""Encoding of a space from a "pcs new" file for BOHB's model; see `_proposals`."""

import math
from pathlib import Path
from random import Random
from typing import Final

import numpy as np

from nni.hpo.advisors._halving_advisor import RESERVED
from nni.hpo.advisors._pcs import Comparison, Condition, PcsError, PcsFile, PcsParameter, read_pcs
from nni.hpo.encoding.columns import BELL_WIDTH, Row
from nni.hpo.json_value import JsonValue
from nni.hpo.models.parzen import Frame

_DRAWS: Final = 10_000
"""Limit of the draws for an allowed configuration; without one the space is refused."""

Value = str | float


class PcsProposals:
    """Encoder between rows and configurations of a PCS file; obeys its conditions.

    Inactive parameters do not appear in a configuration; in its row they stand at their default.

    Args:
        pcs: the space.
        origin: names it in errors.

    Raises:
        PcsError: it uses a reserved name, or forbids every draw.
    """

    def __init__(self, pcs: PcsFile, origin: str = "<text>") -> None:
        taken = sorted(RESERVED & {parameter.name for parameter in pcs.parameters})
        if taken:
            raise PcsError(f"{origin}: name {taken[0]!r} is reserved; rename the parameter")
        self._origin = origin
        self._pcs = pcs
        self._numeric = [p for p in pcs.parameters if p.kind != "categorical"]
        self._categorical = [p for p in pcs.parameters if p.kind == "categorical"]
        self._by_name = {p.name: p for p in pcs.parameters}
        self._conditions: dict[str, list[Condition]] = {}
        for condition in pcs.conditions:
            self._conditions.setdefault(condition.child, []).append(condition)
        self.frame = Frame(
            np.ones(len(self._numeric), dtype=bool),
            BELL_WIDTH,
            np.array([len(p.options) for p in self._categorical], dtype=np.int64),
        )
        self.draw(Random(0))  # raises if nothing is allowed

    @classmethod
    def read(cls, path: Path) -> "PcsProposals":
        """Return an encoder for the space in a PCS file.

        Raises:
            PcsError: a line is wrong.
            OSError: the file cannot be read.
        """
        return cls(read_pcs(path), str(path))

    def draw(self, rng: Random) -> dict[str, JsonValue]:
        """Return the first allowed draw from the prior; raise PcsError if none of many is."""
        for _ in range(_DRAWS):
            every: dict[str, Value] = {
                p.name: rng.choice(p.options) if p.options else value_at(p, rng.random())
                for p in self._pcs.parameters
            }
            configuration = self._allowed(every)
            if configuration is not None:
                return configuration
        raise PcsError(f"{self._origin}: none of {_DRAWS} draws is allowed; forbid less")

    def row(self, configuration: JsonValue) -> Row:
        """Return a configuration as coordinates and options; ValueError if the file forbids it."""
        if not isinstance(configuration, dict):
            raise ValueError(f"configuration: must be a dict, got {configuration!r:.200}")  # noqa: TRY004 - one type for all faults of an input
        unknown = sorted(map(str, configuration.keys() - self._by_name.keys()))
        if unknown:
            raise ValueError(f"configuration: unknown parameters {unknown}")
        every = {p.name: configuration.get(p.name, p.default) for p in self._pcs.parameters}
        for name, value in every.items():
            check_value(self._by_name[name], value)
        if self._allowed(every) != configuration:
            raise ValueError(
                f"configuration: conditions or forbidden combinations of {self._origin} "
                f"do not allow {configuration!r:.200}"
            )
        return Row(
            0,
            tuple(coordinate_of(p, every[p.name]) for p in self._numeric),
            tuple(p.options.index(every[p.name]) for p in self._categorical),
        )

    def configuration(self, row: Row) -> dict[str, JsonValue] | None:
        """Return the configuration nearest to a row, or None if constraints forbid it."""
        numbers = {
            p.name: value_at(p, c) for p, c in zip(self._numeric, row.coordinates, strict=True)
        }
        words = {p.name: p.options[o] for p, o in zip(self._categorical, row.options, strict=True)}
        return self._allowed({**numbers, **words})

    def _allowed(self, every: dict[str, Value]) -> dict[str, JsonValue] | None:
        """Return the values of active parameters, in declared order; None if forbidden."""
        active = {
            p.name: every[p.name] for p in self._pcs.parameters if self._active(p.name, every)
        }
        for clauses in self._pcs.forbidden:
            if all(name in active and active[name] == value for name, value in clauses):
                return None
        return active

    def _active(self, name: str, every: dict[str, Value]) -> bool:
        return all(
            any(all(self._holds(item, every) for item in part) for part in condition.alternatives)
            for condition in self._conditions.get(name, ())
        )

    def _holds(self, item: Comparison, every: dict[str, Value]) -> bool:
        if not self._active(item.parent, every):
            return False
        parent, value = self._by_name[item.parent], every[item.parent]
        if item.operator == "in":
            return value in item.values
        (wanted,) = item.values
        if item.operator == "==":
            return value == wanted
        if item.operator == "!=":
            return value != wanted
        left, right = order_of(parent, value), order_of(parent, wanted)
        return left < right if item.operator == "<" else left > right


def order_of(parameter: PcsParameter, value: Value) -> float:
    """Return a number as it is, as a float; an ordinal option's position from 0."""
    return parameter.options.index(str(value)) if parameter.options else float(value)


def _range(parameter: PcsParameter) -> tuple[float, float]:
    """Return the bounds of a parameter's scale, log if declared; half a step wider if discrete."""
    low, high = parameter.low, parameter.high
    if parameter.options:
        low, high = 0.0, len(parameter.options) - 1.0
    if parameter.kind != "real":
        low, high = low - 0.5, high + 0.5
    return (math.log(low), math.log(high)) if parameter.log else (low, high)


def value_at(parameter: PcsParameter, coordinate: float) -> Value:
    """Return an ordered parameter's value at a coordinate in [0, 1], rounded and clipped."""
    start, end = _range(parameter)
    raw = start + coordinate * (end - start)
    if parameter.log:
        raw = math.exp(raw)
    if parameter.options:
        return parameter.options[min(max(round(raw), 0), len(parameter.options) - 1)]
    inside = min(max(raw, parameter.low), parameter.high)
    return round(inside) if parameter.kind == "integer" else inside


def coordinate_of(parameter: PcsParameter, value: Value) -> float:
    """Return the coordinate in [0, 1] of an ordered parameter's value; 0.5 if it has only one."""
    start, end = _range(parameter)
    raw = order_of(parameter, value)
    if start == end:
        return 0.5
    return ((math.log(raw) if parameter.log else raw) - start) / (end - start)


def check_value(parameter: PcsParameter, value: object) -> None:
    """Raise ValueError unless a value is an option of the parameter or in its range."""
    if parameter.options:
        if value not in parameter.options:
            words = ", ".join(parameter.options)
            raise ValueError(f"parameter {parameter.name!r}: must be one of {words}; got {value!r}")
        return
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    whole = parameter.kind != "integer" or (numeric and value == int(value))  # type: ignore[call-overload] # a number by now
    if not numeric or not whole or not parameter.low <= value <= parameter.high:  # type: ignore[operator] # a number by now
        word = "an integer" if parameter.kind == "integer" else "a number"
        raise ValueError(
            f"parameter {parameter.name!r}: must be {word} in "
            f"[{parameter.low}, {parameter.high}], got {value!r}"
        )
