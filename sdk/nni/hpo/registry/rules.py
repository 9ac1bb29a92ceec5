"""Rules for the value of one argument: what it accepts, and how errors and tables word it.

Standard library only, so that a configuration is checked without numpy.
"""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Final, Protocol, TypeGuard

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import objectives_of

MANY: Final = 2**31 - 1
"""Upper limit of arguments that count something and have no other one."""


class Rule(Protocol):
    """Condition on the value of one argument; a frozen dataclass with a `repr` that builds it."""

    @property
    def type(self) -> str:
        """Name of the type, as in a table of arguments: `int`, `list of float`, …."""
        ...

    @property
    def range(self) -> str:
        """The condition beyond the type, such as `in [1, 99]`; empty if there is none."""
        ...

    @property
    def text(self) -> str:
        """The condition in an error, after `must be`: `an int in [1, 99]`."""
        ...

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether an argument's value meets this rule, given the other arguments.

        Args:
            value: not None, unless the argument may not be None.
            others: values of all arguments, defaults included, by name.
        """
        ...


@dataclass(frozen=True, slots=True)
class IntRange:
    """Rule: the argument is an int between two bounds, both included; a bool is no int."""

    low: int
    high: int | None = None
    """None for no upper bound."""

    type = "int"

    @property
    def range(self) -> str:
        """Text of the bounds: `in [1, 99]`, or `>= 1` without an upper one."""
        return f">= {self.low}" if self.high is None else f"in [{self.low}, {self.high}]"

    @property
    def text(self) -> str:
        """Text of the rule in an error, after `must be`: `an int in [1, 99]`."""
        return f"an int {self.range}"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is an int, no bool, within the bounds."""
        del others
        if isinstance(value, bool) or not isinstance(value, int):
            return False
        return self.low <= value and (self.high is None or value <= self.high)


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """Rule: the argument is a whole number from `low` on, perhaps a float such as 1e5."""

    low: int

    type = "int"

    @property
    def range(self) -> str:
        """Text of the bound: `>= 1`."""
        return f">= {self.low}"

    @property
    def text(self) -> str:
        """Text of the rule in an error, after `must be`: `a whole number >= 1`."""
        return f"a whole number {self.range}"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is an int, or a float without a fraction, of at least `low`."""
        del others
        return _is_number(value) and value == int(value) and value >= self.low


@dataclass(frozen=True, slots=True)
class IntAbove:
    """Rule: the argument is an int greater than another argument, or equal if allowed."""

    other: str
    """Name of the other argument."""

    or_equal: bool = False
    high: int = MANY

    type = "int"

    @property
    def hint(self) -> str:
        """Remedy in an error, in place of the default value: raise it, or lower the other."""
        return f"raise it, or lower {self.other}"

    @property
    def range(self) -> str:
        """Text of the bound by the other argument: `> other`, or `>= other` if allowed."""
        return f"{'>=' if self.or_equal else '>'} {self.other}"

    @property
    def text(self) -> str:
        """Text of the rule in an error, after `must be`: `an int > other`."""
        return f"an int {self.range}"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is an int above the other argument, or equal if allowed."""
        if isinstance(value, bool) or not isinstance(value, int) or value > self.high:
            return False
        other: JsonValue = others[self.other]
        return bool(value > other or (self.or_equal and value == other))


@dataclass(frozen=True, slots=True)
class FloatRange:
    """Rule: the argument is a finite number between two bounds; ints pass, bools do not."""

    low: float = -math.inf
    high: float = math.inf
    open_low: bool = False
    """True if `low` itself is excluded."""
    open_high: bool = False
    """True if `high` itself is excluded."""
    infinite: bool = False
    """True if infinity passes."""

    type = "float"

    @property
    def range(self) -> str:
        """Text of the bounds, such as `in (0, 1]` or `>= 0`; empty if there are none."""
        if math.isinf(self.low) and math.isinf(self.high):
            return ""
        if math.isinf(self.high):
            return f"{'>' if self.open_low else '>='} {self.low:g}"
        left, right = "(" if self.open_low else "[", ")" if self.open_high else "]"
        return f"in {left}{self.low:g}, {self.high:g}{right}"

    @property
    def text(self) -> str:
        """Text of the rule in an error, after `must be`: `a number in (0, 1]`."""
        return f"a number {self.range}".strip()

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is a number within the bounds; infinity only if `infinite`."""
        del others
        if self.infinite and value == math.inf:
            return True
        if not _is_number(value) or abs(value) > sys.float_info.max:
            return False
        above = value > self.low or (value == self.low and not self.open_low)
        return above and (value < self.high or (value == self.high and not self.open_high))


@dataclass(frozen=True, slots=True, init=False)
class OneOf:
    """Rule: the argument is one of several texts."""

    options: tuple[str, ...]
    hint: str
    """Remedy, instead of the default value; empty for none."""

    type = "str"

    def __init__(self, *options: str, hint: str = "") -> None:
        object.__setattr__(self, "options", options)
        object.__setattr__(self, "hint", hint)

    def __repr__(self) -> str:
        """Return the call that builds the rule."""
        hint = f", hint={self.hint!r}" if self.hint else ""
        return f"OneOf({', '.join(map(repr, self.options))}{hint})"

    @property
    def range(self) -> str:
        """Text of the options, with ` | ` between them."""
        return " | ".join(self.options)

    @property
    def text(self) -> str:
        """Text of the rule in an error, after `must be`: `one of 'a', 'b'`."""
        return f"one of {', '.join(map(repr, self.options))}"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is one of the option strings."""
        del others
        return isinstance(value, str) and value in self.options


@dataclass(frozen=True, slots=True)
class Boolean:
    """Rule: the argument is true or false; 0 and 1 are neither."""

    type = "bool"
    range = ""
    text = "true or false"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is True or False; 0 and 1 are neither."""
        del others
        return isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class PathText:
    """Rule: the argument is a path of a file or folder, which need not exist; not empty."""

    type = "str"
    range = "a path"
    text = "a path, which is not empty"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is a non-empty string; the path need not exist."""
        del others
        return isinstance(value, str) and value != ""


@dataclass(frozen=True, slots=True)
class AbsoluteFile:
    """Rule: the argument is the absolute path of a file that exists."""

    type = "str"
    range = "an absolute path"
    text = "an absolute path of a file that exists"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is a string: the absolute path of an existing file."""
        del others
        return isinstance(value, str) and PurePath(value).is_absolute() and Path(value).is_file()


@dataclass(frozen=True, slots=True)
class PositiveNumbers:
    """Rule: the argument is a non-empty list of positive finite numbers."""

    type = "list of float"
    range = "each > 0"
    text = "a non-empty list of positive numbers"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is a non-empty list of numbers > 0."""
        del others
        return (
            isinstance(value, list | tuple)
            and len(value) > 0
            and all(_is_number(item) and item > 0 for item in value)
        )


@dataclass(frozen=True, slots=True)
class TunerList:
    """Rule: the argument is a list of tuners, each a name or a dict with `name` and arguments."""

    type = "list"
    range = "names | {name, classArgs, label}"
    text = "a list of names of tuners, or of dicts with 'name', 'classArgs' and 'label'"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is a list; `nni.hpo.registry.named_tuners` checks its items."""
        del others
        return isinstance(value, list | tuple)


@dataclass(frozen=True, slots=True)
class Modes:
    """Rule: the argument is an optimize mode, or a dict of metric to mode."""

    type = "str or dict"
    range = "maximize | minimize | {metric: mode}"
    text = "'maximize', 'minimize' or a dict of metric to one of them"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is an optimize mode, or a dict of metric to mode."""
        del others
        try:
            objectives_of(value)
        except ValueError:
            return False
        return True


@dataclass(frozen=True, slots=True)
class Text:
    """Rule: the argument is a text."""

    type = "str"
    range = ""
    text = "a text"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return whether a value is a string, perhaps empty."""
        del others
        return isinstance(value, str)


@dataclass(frozen=True, slots=True)
class AnyValue:
    """Rule that accepts every value, for arguments whose annotation states no rule."""

    type = "any"
    range = ""
    text = "any value"

    def accepts(self, value: object, others: Mapping[str, object]) -> bool:
        """Return True."""
        del value, others
        return True


def _is_number(value: object) -> TypeGuard[float]:
    """Return whether a value is a finite int or float, and no bool."""
    if isinstance(value, int):  # too large for a float, perhaps
        return not isinstance(value, bool)
    return isinstance(value, float) and math.isfinite(value)
