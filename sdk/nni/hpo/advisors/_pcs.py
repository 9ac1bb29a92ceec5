"""Parser of search spaces in the "pcs new" text form of algorithm configuration.

One statement a line, `#` begins a comment:

    name categorical {a, b} [a]
    name ordinal {low, high} [low]
    name integer [1, 100] [10] log
    name real [0.1, 1] [0.5]
    child | parent in {a, b}            also ==, !=, <, >; && and || join comparisons
    {first=a, second=1}                 forbidden together
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NoReturn, cast

Kind = Literal["categorical", "ordinal", "integer", "real"]
Operator = Literal["in", "==", "!=", "<", ">"]

_LISTED = re.compile(r"(\S+)\s+(categorical|ordinal)\s*\{([^{}]*)\}\s*\[([^\[\]]*)\]")
_RANGED = re.compile(
    r"(\S+)\s+(integer|real)\s*\[([^,\[\]]+),([^,\[\]]+)\]\s*\[([^\[\]]+)\]\s*(log)?"
)
_COMPARISON = re.compile(r"(\S+?)\s*(?:(==|!=|<|>)\s*([^\s{}]+)|\bin\s*\{([^{}]*)\})")
_HEADINGS: Final = frozenset({"conditionals:", "conditions:", "forbidden:"})


class PcsError(ValueError):
    """Error: malformed or contradictory line; the message names file and line."""


@dataclass(frozen=True, slots=True)
class PcsParameter:
    """Hyperparameter of a PCS file: kind, options or range, whether its scale is log, default."""

    name: str
    kind: Kind
    options: tuple[str, ...]
    """Options of categorical parameters, and of ordinal ones in order; else empty."""
    low: float
    high: float
    """Bounds of a range, both included; 0 for lists."""
    log: bool
    default: str | float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison `parent operator values` in a condition of a PCS file."""

    parent: str
    operator: Operator
    values: tuple[str | float, ...]
    """A single value, except for `in`."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Condition of a child parameter: active if all comparisons of an alternative hold."""

    child: str
    alternatives: tuple[tuple[Comparison, ...], ...]


@dataclass(frozen=True, slots=True)
class PcsFile:
    """Parsed PCS file: parameters, conditions and forbidden combinations."""

    parameters: tuple[PcsParameter, ...]
    conditions: tuple[Condition, ...]
    """Conditions; all those of one child must hold."""
    forbidden: tuple[tuple[tuple[str, str | float], ...], ...]
    """Forbidden combinations; each a list of (name, value)."""


def read_pcs(path: Path) -> PcsFile:
    """Parse a PCS file into parameters, conditions and forbidden combinations.

    Raises:
        PcsError: a line is wrong.
        OSError: the file cannot be read.
    """
    return parse_pcs(path.read_text(encoding="utf-8"), str(path))


def parse_pcs(text: str, origin: str = "<text>") -> PcsFile:
    """Parse a text in PCS format; `origin` names it in the PcsError of a wrong line.

    Raises:
        PcsError: a line is wrong.
    """
    reader = _Reader(origin)
    for number, line in _statements(text):
        reader.read_parameter(number, line)
    for number, line in _statements(text):
        reader.read_rule(number, line)
    return reader.result()


def _statements(text: str) -> Iterator[tuple[int, str]]:
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.partition("#")[0].strip()
        if line and line.casefold() not in _HEADINGS:
            yield number, line


class _Reader:
    """Parser of one file: first all parameters, then conditions and forbidden clauses."""

    def __init__(self, origin: str) -> None:
        self._origin = origin
        self._parameters: dict[str, PcsParameter] = {}
        self._conditions: list[Condition] = []
        self._forbidden: list[tuple[tuple[str, str | float], ...]] = []

    def result(self) -> PcsFile:
        if not self._parameters:
            self._refuse(0, "the file declares no parameter")
        self._check_no_cycle()
        return PcsFile(
            tuple(self._parameters.values()), tuple(self._conditions), tuple(self._forbidden)
        )

    def read_parameter(self, number: int, line: str) -> None:
        if _is_rule(line):
            return
        listed, ranged = _LISTED.fullmatch(line), _RANGED.fullmatch(line)
        if listed is not None:
            parameter = self._listed(number, listed)
        elif ranged is not None:
            parameter = self._ranged(number, ranged)
        else:
            self._refuse(number, f"cannot read {line!r}")
        if parameter.name in self._parameters:
            self._refuse(number, f"parameter {parameter.name!r} is declared twice")
        self._parameters[parameter.name] = parameter

    def read_rule(self, number: int, line: str) -> None:
        if not _is_rule(line):
            return
        if line.startswith("{"):
            self._forbidden.append(self._clauses(number, line))
            return
        child, _, rest = line.partition("|")
        alternatives = tuple(
            tuple(self._comparison(number, part) for part in alternative.split("&&"))
            for alternative in rest.split("||")
        )
        self._conditions.append(Condition(self._known(number, child).name, alternatives))

    def _listed(self, number: int, match: re.Match[str]) -> PcsParameter:
        name, kind, listing, default = match.groups()
        options = _words(listing)
        if not options or len(set(options)) != len(options):
            self._refuse(number, f"options of {name!r} must be distinct and at least one")
        if default.strip() not in options:
            self._refuse(number, f"default of {name!r} must be an option, got {default!r}")
        return PcsParameter(
            name, cast("Kind", kind), options, low=0, high=0, log=False, default=default.strip()
        )

    def _ranged(self, number: int, match: re.Match[str]) -> PcsParameter:
        name, kind = match.group(1), match.group(2)
        low, high, default = (self._number(number, text) for text in match.groups()[2:5])
        log = match.group(6) is not None
        if not low <= default <= high:
            self._refuse(number, f"{name!r} needs low <= default <= high")
        if log and low <= 0:
            self._refuse(number, f"low of {name!r} must be > 0 with log, got {low}")
        if kind == "integer" and any(value != int(value) for value in (low, high, default)):
            self._refuse(number, f"bounds and default of {name!r} must be integers")
        return PcsParameter(name, cast("Kind", kind), (), low, high, log, default)

    def _number(self, number: int, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            self._refuse(number, f"{text.strip()!r} is no number")

    def _comparison(self, number: int, text: str) -> Comparison:
        match = _COMPARISON.fullmatch(text.strip())
        if match is None:
            self._refuse(number, f"cannot read the condition {text.strip()!r}")
        name, operator, value, listing = match.groups()
        parent = self._known(number, name)
        words = _words(listing) if listing is not None else (value,)
        if operator in {"<", ">"} and parent.kind == "categorical":
            self._refuse(number, f"{parent.name!r} is categorical and has no order")
        values = tuple(self._value(number, parent, word) for word in words)
        return Comparison(parent.name, cast("Operator", operator or "in"), values)

    def _clauses(self, number: int, line: str) -> tuple[tuple[str, str | float], ...]:
        if not line.endswith("}"):
            self._refuse(number, "a forbidden combination must end with '}'")
        clauses: list[tuple[str, str | float]] = []
        for word in _words(line[1:-1]):
            name, equals, value = word.partition("=")
            if not equals:
                self._refuse(number, f"a forbidden clause must be name=value, got {word!r}")
            parameter = self._known(number, name)
            clauses.append((parameter.name, self._value(number, parameter, value.strip(" ="))))
        if not clauses:
            self._refuse(number, "a forbidden combination must not be empty")
        return tuple(clauses)

    def _value(self, number: int, parameter: PcsParameter, word: str) -> str | float:
        if not parameter.options:
            return self._number(number, word)
        if word not in parameter.options:
            self._refuse(number, f"{word!r} is no option of {parameter.name!r}")
        return word

    def _known(self, number: int, name: str) -> PcsParameter:
        parameter = self._parameters.get(name.strip())
        if parameter is None:
            self._refuse(number, f"parameter {name.strip()!r} is not declared")
        return parameter

    def _check_no_cycle(self) -> None:
        parents: dict[str, set[str]] = {name: set() for name in self._parameters}
        for condition in self._conditions:
            for alternative in condition.alternatives:
                parents[condition.child].update(item.parent for item in alternative)
        while parents:
            roots = [name for name, above in parents.items() if not above & parents.keys()]
            if not roots:
                self._refuse(0, f"conditions form a cycle among {', '.join(sorted(parents))}")
            for name in roots:
                del parents[name]

    def _refuse(self, number: int, reason: str) -> NoReturn:
        where = f"{self._origin}:{number}" if number else self._origin
        raise PcsError(f"{where}: {reason}")


def _is_rule(line: str) -> bool:
    return line.startswith("{") or "|" in line


def _words(listing: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in listing.split(",") if word.strip())
