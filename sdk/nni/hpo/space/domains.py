"""The values that one hyperparameter can take: how to draw them and how to recognise them.

Every domain draws from its prior with a `random.Random` that it is given, and returns plain Python
values. Formulas: `clip(round(U(low, high) / q) * q, low, high)` and its logarithmic and normal
relatives, ties rounded to even as Python does.
"""

import copy
import hashlib
import json
import math
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from random import Random
from typing import Final, Protocol, TypeAlias

from nni.hpo.json_value import JsonValue

CONSTRAINTS_KEY: Final = "_constraints"
"""The one key of a search space that is no hyperparameter; `nni.hpo.space.constraints` reads it."""

RELATIVE_TOLERANCE = 1e-9
"""Two numbers that differ by no more than this, relatively, are the same value."""

_LARGEST_EXPONENT = 709.0  # exp of more overflows a float, and of less than its negative is no
# normal one, and soon 0, which is no value of a logarithmic type

_DRAWS: Final = 200
"""Draws of the prior that are tried before an allowed configuration is walked to."""
_WALK_STEPS: Final = 200


def same_value(left: object, right: object) -> bool:
    """Whether two JSON values mean the same: numbers up to rounding, true and 1 apart."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right or math.isclose(left, right, rel_tol=RELATIVE_TOLERANCE)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same_value, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[k], right[k]) for k in left)
    return left == right and type(left) is type(right)


def _as_float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, got {value!r}")  # noqa: TRY004 - one type for all faults of an input
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(f"must be finite, got {value!r}")
    return number


def _close(left: float, right: float, scale: float) -> bool:
    return abs(left - right) <= RELATIVE_TOLERANCE * max(abs(left), abs(right), scale)


@dataclass(frozen=True, slots=True)
class UniformDomain:
    """`uniform`, `quniform`, `loguniform`, `qloguniform`: a bounded range of floats."""

    low: float
    high: float
    q: float | None = None
    """Step of the multiples to round to; None for a continuous range."""
    log: bool = False
    """Whether the logarithm is uniform; then `low` is positive."""

    def draw(self, rng: Random) -> float:
        """Return one value of the prior."""
        if self.log:
            raw = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        else:
            raw = self.low + rng.random() * (self.high - self.low)
        return self.snap(raw)

    def snap(self, raw: float) -> float:
        """Return the value of this domain that `raw` rounds to."""
        if self.q is not None:
            raw = round(raw / self.q) * self.q
        return min(max(raw, self.low), self.high)

    def steps(self) -> tuple[int, int]:
        """Return the first and the last multiple of `q`; only for quantised ranges."""
        assert self.q is not None
        return round(self.low / self.q), round(self.high / self.q)

    def check(self, value: object) -> float:
        """Return `value` as this domain's float, or raise ValueError saying why it is none."""
        number = _as_float(value)
        snapped = self.snap(number)
        if not _close(number, snapped, abs(self.high - self.low)):
            step = f", in steps of {self.q}" if self.q is not None else ""
            raise ValueError(f"must lie in [{self.low}, {self.high}]{step}, got {value!r}")
        return snapped


@dataclass(frozen=True, slots=True)
class NormalDomain:
    """`normal`, `qnormal`, `lognormal`, `qlognormal`: an unbounded bell of floats."""

    mu: float
    sigma: float
    q: float | None = None
    """Step of the multiples to round to; None for a continuous range."""
    log: bool = False
    """Whether `mu` and `sigma` are those of the logarithm."""

    def draw(self, rng: Random) -> float:
        """Return one value of the prior."""
        return self.from_bell(rng.gauss(self.mu, self.sigma))

    def from_bell(self, raw: float) -> float:
        """Return the value for a point `raw` of the bell itself."""
        if self.log:
            raw = math.exp(min(max(raw, -_LARGEST_EXPONENT), _LARGEST_EXPONENT))
        return raw if self.q is None else round(raw / self.q) * self.q

    def check(self, value: object) -> float:
        """Return `value` as this domain's float, or raise ValueError saying why it is none."""
        number = _as_float(value)
        if self.log and (number < 0 or (number == 0 and self.q is None)):
            raise ValueError(f"must be positive, got {value!r}")
        if self.q is None:
            return number
        snapped = round(number / self.q) * self.q
        if not _close(number, snapped, self.q):
            raise ValueError(f"must be a multiple of {self.q}, got {value!r}")
        return snapped


@dataclass(frozen=True, slots=True)
class IntegerDomain:
    """`randint`: the integers of `[lower, upper)`."""

    lower: int
    upper: int

    def draw(self, rng: Random) -> int:
        """Return one value of the prior."""
        return rng.randrange(self.lower, self.upper)

    def check(self, value: object) -> int:
        """Return `value` as an int, or raise ValueError saying why it is none of these."""
        number = _as_float(value)
        if number != int(number) or not self.lower <= number < self.upper:
            raise ValueError(f"must be an integer in [{self.lower}, {self.upper}), got {value!r}")
        return int(number)


@dataclass(frozen=True, slots=True)
class Branch:
    """An option of a choice that opens a space of its own."""

    name: str
    """The `_name` that identifies the branch within its choice."""
    space: "Space"


@dataclass(frozen=True, slots=True)
class ChoiceDomain:
    """`choice`: a list of options, each a plain JSON value or a branch."""

    options: tuple[object, ...]
    """JSON values and `Branch`es, in the user's order; an option may be listed twice."""
    _index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the options by their text, so that long lists are searched once."""
        index: dict[str, int] = {}
        for position, option in enumerate(self.options):
            index.setdefault(_option_text(option), position)
        object.__setattr__(self, "_index", index)

    def position(self, value: object) -> int:
        """Return the position of the option that `value` is, or was drawn from.

        Raises:
            ValueError: no option is like it.
        """
        found = self._index.get(_value_text(value))
        if found is not None:
            return found
        for position, option in enumerate(self.options):
            if not isinstance(option, Branch) and same_value(option, value):
                return position
        shown = ", ".join(
            repr(o.name) if isinstance(o, Branch) else repr(o) for o in self.options[:10]
        )
        more = ", ..." if len(self.options) > 10 else ""  # noqa: PLR2004 - enough for a message
        raise ValueError(f"must be one of {shown}{more}; got {value!r:.200}")

    def branches(self) -> tuple[Branch | None, ...]:
        """Return per option its branch, None for plain ones."""
        return tuple(o if isinstance(o, Branch) else None for o in self.options)


def _option_text(option: object) -> str:
    return _branch_text(option.name) if isinstance(option, Branch) else _plain_text(option)


def _value_text(value: object) -> str:
    if isinstance(value, dict) and isinstance(value.get("_name"), str):
        return _branch_text(value["_name"])
    return _plain_text(value)


def _plain_text(value: object) -> str:
    """Return a text that is the same for 2 and 2.0, as the two are the same value."""
    if type(value) is str:  # nearly every option is; asked for with each result of a replay
        return encode_basestring(value)
    return canonical_json(_with_plain_numbers(value))


def _with_plain_numbers(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list | tuple):
        return [_with_plain_numbers(item) for item in value]
    if isinstance(value, dict):
        return {key: _with_plain_numbers(item) for key, item in value.items()}
    return value


def _branch_text(name: str) -> str:
    return f"branch {name}"  # no JSON text begins so


def canonical_json(value: object) -> str:
    """Return the one JSON text of a value: keys sorted, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def configuration_hash(configuration: object) -> str:
    """Return what is the same for configurations that mean the same, 2 and 2.0 included."""
    return hashlib.sha256(_plain_text(configuration).encode()).hexdigest()


NumericDomain: TypeAlias = UniformDomain | NormalDomain | IntegerDomain
Domain: TypeAlias = NumericDomain | ChoiceDomain


@dataclass(frozen=True, slots=True)
class Parameter:
    """One named entry of a space."""

    key: str
    """The key under which its value is delivered."""
    path: str
    """Unique within the whole tree, such as `layer0/Conv/kernel_size`."""
    kind: str
    """The `_type` word of the search space."""
    domain: Domain


class Constraint(Protocol):
    """One constraint between the parameters of a space."""

    @property
    def text(self) -> str:
        """As the user wrote it, for errors."""
        ...

    @property
    def keys(self) -> frozenset[str]:
        """The root's keys that it depends on."""
        ...

    def holds(self, configuration: JsonValue) -> bool:
        """Whether a configuration keeps it; true where a parameter that it names is not active."""
        ...


@dataclass(frozen=True, slots=True)
class Space:
    """The parameters of one level; branches of choices hold the levels below."""

    parameters: tuple[Parameter, ...]
    rules: tuple[Constraint, ...] = ()
    """Constraints on whole configurations; the root has them, for all levels."""
    anchor: dict[str, JsonValue] | None = field(default=None, compare=False, repr=False)
    """A configuration that the rules allow; None only where there are no rules."""

    def broken(self, configuration: JsonValue) -> Constraint | None:
        """Return the first rule that a configuration breaks, None if it is allowed."""
        for rule in self.rules:
            if not rule.holds(configuration):
                return rule
        return None

    def allows(self, configuration: JsonValue) -> bool:
        """Whether a configuration, perhaps with parts missing, breaks no rule."""
        return not self.rules or self.broken(configuration) is None

    def draw(self, rng: Random) -> dict[str, JsonValue]:
        """Return one configuration of the prior that is allowed; only drawn branches appear."""
        if not self.rules:
            return {p.key: _draw(p.domain, rng) for p in self.parameters}
        for _ in range(_DRAWS):
            configuration = {p.key: _draw(p.domain, rng) for p in self.parameters}
            if self.allows(configuration):
                return configuration
        return self._walked(rng)

    def _walked(self, rng: Random) -> dict[str, JsonValue]:
        """Return an allowed configuration of a space of which little is allowed.

        Single values are drawn anew and kept where that is allowed: far from the start, such a walk
        gives every allowed configuration as often as the prior does.
        """
        assert self.anchor is not None
        configuration = copy.deepcopy(self.anchor)
        for _ in range(_WALK_STEPS):
            places = active_places(self, configuration)
            values, parameter = places[rng.randrange(len(places))]
            old = values[parameter.key]
            values[parameter.key] = _draw(parameter.domain, rng)
            if not self.allows(configuration):
                values[parameter.key] = old
        return configuration


def active_places(
    space: Space, values: dict[str, JsonValue]
) -> list[tuple[dict[str, JsonValue], Parameter]]:
    """Return the parameters that a configuration has, each with the dict that holds its value."""
    found: list[tuple[dict[str, JsonValue], Parameter]] = []
    for parameter in space.parameters:
        found.append((values, parameter))
        if isinstance(parameter.domain, ChoiceDomain):
            value = values[parameter.key]
            option = parameter.domain.options[parameter.domain.position(value)]
            if isinstance(option, Branch):
                found += active_places(option.space, value)
    return found


def _draw(domain: Domain, rng: Random) -> JsonValue:
    if not isinstance(domain, ChoiceDomain):
        return domain.draw(rng)
    option = domain.options[rng.randrange(len(domain.options))]
    if isinstance(option, Branch):
        return {"_name": option.name, **option.space.draw(rng)}
    return option
