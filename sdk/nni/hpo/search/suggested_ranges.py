"""Ranges of hyperparameters that an objective suggests, and their form in a search space.

The tuner sees a code of each value: the number of a step or of an option. So the values may have
any first value and step, and options may be objects of any type.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from nni.hpo.json_value import JsonValue

_CLOSE = 1e-9
"""Relative distance below which two numbers are equal up to rounding."""


class SuggestedRange(Protocol):
    """Protocol of a hyperparameter's range: converts its values to a tuner's codes and back."""

    @property
    def entry(self) -> dict[str, JsonValue]:
        """Entry of the tuner's search space, whose values are codes."""
        ...

    @property
    def declared(self) -> dict[str, JsonValue]:
        """Entry of a search space with the values themselves."""
        ...

    def decode(self, code: Any) -> Any:  # noqa: ANN401 - a value of any type
        """Return the value of a code."""
        ...

    def encode(self, value: Any) -> JsonValue:  # noqa: ANN401 - a value of any type
        """Return the code of a value.

        Raises:
            ValueError: the range does not have it.
        """
        ...


@dataclass(frozen=True, slots=True)
class ContinuousRange:
    """Floating-point numbers from `low` to `high`, uniform or log-uniform."""

    low: float
    high: float
    log: bool

    @property
    def entry(self) -> dict[str, JsonValue]:
        """Search-space entry with which the tuner searches: uniform or loguniform."""
        return {"_type": "loguniform" if self.log else "uniform", "_value": [self.low, self.high]}

    @property
    def declared(self) -> dict[str, JsonValue]:
        """Search-space entry as users would declare it: the same as `entry`."""
        return self.entry

    def decode(self, code: Any) -> float:  # noqa: ANN401 - see SuggestedRange
        """Return the tuner's number, clipped to the bounds."""
        return min(max(float(code), self.low), self.high)

    def encode(self, value: Any) -> JsonValue:  # noqa: ANN401 - see SuggestedRange
        """Return the value as a float; raise ValueError outside the range."""
        if not _is_number(value) or not self.low <= value <= self.high:
            raise _outside(value, self)
        return float(value)

    def __str__(self) -> str:
        """Return the range as in an error message."""
        return f"[{self.low!r}, {self.high!r}]{' log' if self.log else ''}"


@dataclass(frozen=True, slots=True)
class SteppedRange:
    """`count` numbers from `low` in steps: integers, or floating-point numbers."""

    low: float
    step: float
    count: int
    integral: bool

    @property
    def entry(self) -> dict[str, JsonValue]:
        """Search-space entry with which the tuner searches: the number of the step, a randint."""
        return {"_type": "randint", "_value": [0, self.count]}

    @property
    def declared(self) -> dict[str, JsonValue]:
        """Entry of the values: randint for integers of step 1, else a choice of all values."""
        if self.integral and self.step == 1:
            return {"_type": "randint", "_value": [int(self.low), int(self.low) + self.count]}
        return {"_type": "choice", "_value": [self.decode(code) for code in range(self.count)]}

    def decode(self, code: Any) -> float:  # noqa: ANN401 - see SuggestedRange
        """Return the number at a step, counted from `low`: an int, or a float in exact decimals."""
        if self.integral:
            return int(self.low) + int(code) * int(self.step)
        # In decimals: 0.1 + 2 * 0.1 is 0.3.
        return float(Decimal(repr(self.low)) + int(code) * Decimal(repr(self.step)))

    def encode(self, value: Any) -> JsonValue:  # noqa: ANN401 - see SuggestedRange
        """Return the step at which a value stands; raise ValueError if it is at none."""
        if not _is_number(value) or not math.isfinite(value):
            raise _outside(value, self)
        code = round((value - self.low) / self.step) if self.step else 0
        if not 0 <= code < self.count or not math.isclose(
            self.decode(code), value, rel_tol=_CLOSE, abs_tol=_CLOSE * self.step
        ):
            raise _outside(value, self)
        return code

    def __str__(self) -> str:
        """Return the range as in an error message."""
        high = self.decode(self.count - 1)
        return f"[{self.decode(0)!r}, {high!r}] in steps of {self.step!r}"


@dataclass(frozen=True, slots=True)
class LogIntegerRange:
    """Integers from `low` to `high`, log-uniform."""

    low: int
    high: int

    @property
    def entry(self) -> dict[str, JsonValue]:
        """Search-space entry with which the tuner searches: qloguniform of step 1."""
        return {"_type": "qloguniform", "_value": [self.low, self.high, 1]}

    @property
    def declared(self) -> dict[str, JsonValue]:
        """Search-space entry as users would declare it: the same as `entry`."""
        return self.entry

    def decode(self, code: Any) -> int:  # noqa: ANN401 - see SuggestedRange
        """Return the tuner's number, rounded and clipped to the bounds."""
        return min(max(round(float(code)), self.low), self.high)

    def encode(self, value: Any) -> JsonValue:  # noqa: ANN401 - see SuggestedRange
        """Return an integer as a float; raise ValueError outside the range."""
        if not _is_number(value) or not self.low <= value <= self.high or value != int(value):
            raise _outside(value, self)
        return float(value)

    def __str__(self) -> str:
        """Return the range as in an error message."""
        return f"[{self.low}, {self.high}] log, integers"


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a categorical hyperparameter, of any type."""

    values: tuple[Any, ...]

    @property
    def entry(self) -> dict[str, JsonValue]:
        """Search-space entry with which the tuner searches: a choice of positions."""
        return {"_type": "choice", "_value": list(range(len(self.values)))}

    @property
    def declared(self) -> dict[str, JsonValue]:
        """Search-space entry as users would declare it: a choice of the values."""
        return {"_type": "choice", "_value": list(self.values)}

    def decode(self, code: Any) -> Any:  # noqa: ANN401 - an option
        """Return the option at a position."""
        return self.values[int(code)]

    def encode(self, value: Any) -> JsonValue:  # noqa: ANN401 - an option
        """Return the position of the option of equal type and value; raise ValueError if none."""
        for code, option in enumerate(self.values):
            if type(option) is type(value) and option == value:
                return code
        raise _outside(value, self)

    def __eq__(self, other: object) -> bool:
        """Return whether the options are the same, in order; True is not 1."""
        if not isinstance(other, Options):
            return NotImplemented
        pairs = zip(self.values, other.values, strict=False)
        return len(self.values) == len(other.values) and all(
            type(left) is type(right) and bool(left == right) for left, right in pairs
        )

    def __hash__(self) -> int:
        """Return a hash that equal options share; options need not be hashable."""
        return hash(len(self.values))

    def __str__(self) -> str:
        """Return the options as in an error message."""
        return f"one of {list(self.values)!r:.200}"


def float_range(
    name: str, low: float, high: float, step: float | None, *, log: bool
) -> SuggestedRange:
    """Return the range of `suggest_float`, one value for equal bounds; ValueError if malformed.

    Raises:
        ValueError: the bounds are not finite or in the wrong order, `step` is not positive or used
            with `log`, or `low` is not positive with `log`.
    """
    _check_bounds(name, low, high, step, log=log)
    low, high = float(low), float(high)
    if low == high:
        return SteppedRange(low, 0.0, 1, integral=False)
    if step is None:
        return ContinuousRange(low, high, log)
    count = int((high - low) / step * (1 + _CLOSE)) + 1
    return SteppedRange(low, float(step), count, integral=False)


def int_range(name: str, low: int, high: int, step: int, *, log: bool) -> SuggestedRange:
    """Return the range of `suggest_int`, stepped or log-uniform; ValueError if it is malformed.

    Raises:
        ValueError: a bound or `step` is no integer, or see `float_range`.
    """
    for key, value in (("low", low), ("high", high), ("step", step)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"{key} of {name!r} must be an integer, got {value!r}")  # noqa: TRY004 - one type for all faults of a range
    _check_bounds(name, low, high, None if log and step == 1 else step, log=log)
    if log and low < high:
        return LogIntegerRange(low, high)
    return SteppedRange(low, step, (high - low) // step + 1, integral=True)


def options_of(name: str, choices: Sequence[Any]) -> SuggestedRange:
    """Return the options of `suggest_categorical`; raise ValueError for none or duplicates.

    Raises:
        ValueError: there are none, or one comes twice.
    """
    found = Options(tuple(choices))
    if not found.values:
        raise ValueError(f"choices of {name!r} must not be empty")
    for code, option in enumerate(found.values):
        if found.encode(option) != code:
            raise ValueError(f"choices of {name!r} must differ, got {option!r:.200} twice")
    return found


def _check_bounds(name: str, low: float, high: float, step: float | None, *, log: bool) -> None:
    for key, value in (("low", low), ("high", high)):
        if not _is_number(value) or not math.isfinite(value):
            raise ValueError(f"{key} of {name!r} must be a finite number, got {value!r}")
    if low > high:
        raise ValueError(f"low of {name!r} must be <= high, got {low!r} and {high!r}")
    if step is not None and (not _is_number(step) or not 0 < step < math.inf):
        raise ValueError(f"step of {name!r} must be > 0 and finite, got {step!r}")
    if log and step is not None:
        raise ValueError(f"step of {name!r} must be left out with log=True, got {step!r}")
    if log and low <= 0:
        raise ValueError(f"low of {name!r} must be > 0 with log=True, got {low!r}")


def _is_number(value: object) -> bool:
    """Return whether a value is a number, of those that a float can hold."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) <= sys.float_info.max


def _outside(value: object, known: SuggestedRange) -> ValueError:
    return ValueError(f"must lie in {known}, got {value!r:.200}")
