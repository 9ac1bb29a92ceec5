"""Domains of hyperparameters: prior distributions, validation of values, and whole spaces.

Every domain samples its prior with a given `random.Random` and returns plain Python values.
Formulas: `clip(round(U(low, high) / q) * q, low, high)` and its logarithmic and normal relatives,
ties rounded to even as Python does.
"""

import copy
import hashlib
import json
import math
import sys
from dataclasses import dataclass, field
from json.encoder import encode_basestring
from random import Random
from typing import Final, Protocol, TypeAlias

from nni.hpo.json_value import JsonValue
from nni.hpo.space.user_priors import PRIOR_SHARE, NumberPrior, OptionPrior, UserPrior

CONSTRAINTS_KEY: Final = "_constraints"
"""Key of a search space that holds constraints, see `nni.hpo.space.constraints`."""

RELATIVE_TOLERANCE = 1e-9
"""Largest relative difference of numbers that count as the same value."""

_LARGEST_EXPONENT = 709.0  # exp of a larger number overflows; of a smaller one than its negative
# it is subnormal and then 0, which is no value of a logarithmic type

_DRAWS: Final = 200
"""Samples of the prior that are rejected before the sampler switches to a random walk."""
_WALK_STEPS: Final = 200


def same_value(left: object, right: object) -> bool:
    """Return whether two JSON values are equal: numbers up to rounding, `true` and 1 apart."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, int | float) and isinstance(right, int | float):
        return left == right or _is_close(left, right)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same_value, left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same_value(left[k], right[k]) for k in left)
    return left == right and type(left) is type(right)


def _is_close(left: float, right: float) -> bool:
    try:
        return math.isclose(left, right, rel_tol=RELATIVE_TOLERANCE)
    except OverflowError:  # an int that has no float
        return False


def _as_float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"must be a number, got {value!r}")  # noqa: TRY004 - one type for all faults of an input
    if not abs(value) <= sys.float_info.max:  # NaN is not, either; a larger int has no float
        raise ValueError(f"must be finite, got {value!r:.80}")
    return float(value)


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
    """True if the logarithm is uniform; then `low` is positive."""

    def draw(self, rng: Random) -> float:
        """Return a uniform or log-uniform sample, rounded to the step."""
        if self.log:
            raw = math.exp(rng.uniform(math.log(self.low), math.log(self.high)))
        else:
            raw = self.low + rng.random() * (self.high - self.low)
        return self.snap(raw)

    def snap(self, raw: float) -> float:
        """Return `raw` rounded to the step and clipped to the bounds."""
        if self.q is not None:
            raw = round(raw / self.q) * self.q
        return min(max(raw, self.low), self.high)

    def share_of(self, value: float) -> float:
        """Return the share of the range, of its logarithm if it is logarithmic, below a value."""
        if self.low == self.high:
            return 0.5
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    def at(self, share: float) -> float:
        """Return the value above a share of the range, rounded to the step."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            return self.snap(math.exp(low + share * (high - low)))
        return self.snap(self.low + share * (self.high - self.low))

    def steps(self) -> tuple[int, int]:
        """Return the first and last multiple of `q`; for quantised ranges only."""
        assert self.q is not None
        return round(self.low / self.q), round(self.high / self.q)

    def check(self, value: object) -> float:
        """Return `value` as a float; raise ValueError outside the bounds or off the step.

        Raises:
            ValueError: the value lies outside the domain.
        """
        # The common case, evaluated for each result of a replay.
        if type(value) is float and self.q is None and self.low <= value <= self.high:
            return value
        number = _as_float(value)
        snapped = self.snap(min(max(number, self.low), self.high))
        if not _close(number, snapped, abs(self.high - self.low)):
            step = f", in steps of {self.q}" if self.q is not None else ""
            raise ValueError(f"must lie in [{self.low}, {self.high}]{step}, got {value!r}")
        return snapped


@dataclass(frozen=True, slots=True)
class NormalDomain:
    """`normal`, `qnormal`, `lognormal`, `qlognormal`: an unbounded normal distribution."""

    mu: float
    sigma: float
    q: float | None = None
    """Step of the multiples to round to; None for a continuous range."""
    log: bool = False
    """True if `mu` and `sigma` are those of the logarithm."""

    def draw(self, rng: Random) -> float:
        """Return a sample of the normal or log-normal distribution, rounded to the step."""
        return self.from_normal(rng.gauss(self.mu, self.sigma))

    def from_normal(self, raw: float) -> float:
        """Return a normal sample as a value: exponentiated if logarithmic, rounded to the step."""
        if self.log:
            raw = math.exp(min(max(raw, -_LARGEST_EXPONENT), _LARGEST_EXPONENT))
        return raw if self.q is None else round(raw / self.q) * self.q

    def check(self, value: object) -> float:
        """Return `value` as a float; raise ValueError off the step, or if a log type's is <= 0.

        Raises:
            ValueError: the value lies outside the domain.
        """
        number = _as_float(value)
        if self.log and (number < 0 or (number == 0 and self.q is None)):
            raise ValueError(f"must be positive, got {value!r}")
        if self.q is None:
            return number
        steps = number / self.q
        snapped = round(steps) * self.q if math.isfinite(steps) else 0.0
        if not _close(number, snapped, self.q):
            raise ValueError(f"must be a multiple of {self.q}, got {value!r}")
        return snapped


@dataclass(frozen=True, slots=True)
class IntegerDomain:
    """`randint`: the integers of `[lower, upper)`."""

    lower: int
    upper: int

    def draw(self, rng: Random) -> int:
        """Return an integer drawn uniformly from `[lower, upper)`."""
        return rng.randrange(self.lower, self.upper)

    def share_of(self, value: float) -> float:
        """Return where in [0, 1] the middle of a value's share of the range lies."""
        return (value - self.lower + 0.5) / (self.upper - self.lower)

    def at(self, share: float) -> int:
        """Return the value whose share of the range holds `share`."""
        return min(self.lower + int(share * (self.upper - self.lower)), self.upper - 1)

    def check(self, value: object) -> int:
        """Return `value` as an int; raise ValueError if it is fractional or out of range.

        Raises:
            ValueError: the value lies outside the domain.
        """
        if type(value) is int and self.lower <= value < self.upper:  # the common case
            return value
        number = _as_float(value)
        if number != int(number) or not self.lower <= number < self.upper:
            raise ValueError(f"must be an integer in [{self.lower}, {self.upper}), got {value!r}")
        return int(number)


@dataclass(frozen=True, slots=True)
class Branch:
    """Option of a choice that is a nested space."""

    name: str
    """`_name` of the branch, unique within its choice."""
    space: "Space"


@dataclass(frozen=True, slots=True)
class ChoiceDomain:
    """`choice`: a list of options, each a plain JSON value or a branch."""

    options: tuple[object, ...]
    """JSON values and `Branch`es, in the user's order; an option may be listed twice."""
    _index: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Index the options by their canonical text."""
        index: dict[str, int] = {}
        for position, option in enumerate(self.options):
            index.setdefault(_option_text(option), position)
        object.__setattr__(self, "_index", index)

    def position(self, value: object) -> int:
        """Return the position of the option equal to `value`, or of its branch; ValueError if none.

        Raises:
            ValueError: no option matches.
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
        """Return the branch of each option, None for plain values."""
        return tuple(o if isinstance(o, Branch) else None for o in self.options)


def _option_text(option: object) -> str:
    return _branch_text(option.name) if isinstance(option, Branch) else _plain_text(option)


def _value_text(value: object) -> str:
    if isinstance(value, dict) and isinstance(value.get("_name"), str):
        return _branch_text(value["_name"])
    return _plain_text(value)


def _plain_text(value: object) -> str:
    """Return canonical JSON of a value, in which 2 and 2.0 are the same."""
    # The common cases, evaluated for each option of a space and each result of a replay.
    if type(value) is str:
        return encode_basestring(value)
    if type(value) is int:
        return repr(value)
    if type(value) is float and math.isfinite(value):
        return repr(int(value) if value.is_integer() else value)
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
    return f"branch {name}"  # differs from every JSON text


def canonical_json(value: object) -> str:
    """Return the canonical JSON text of a value: keys sorted, no spaces."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def configuration_hash(configuration: object) -> str:
    """Return a hash that is the same for equal configurations, 2 and 2.0 included."""
    return hashlib.sha256(_plain_text(configuration).encode()).hexdigest()


NumericDomain: TypeAlias = UniformDomain | NormalDomain | IntegerDomain
Domain: TypeAlias = NumericDomain | ChoiceDomain


@dataclass(frozen=True, slots=True)
class Parameter:
    """Named entry of a space, with its domain."""

    key: str
    """Key of its value in a configuration."""
    path: str
    """Path within the whole space, unique, such as `layer0/Conv/kernel_size`."""
    kind: str
    """`_type` of the parameter in the search space."""
    domain: Domain
    prior: UserPrior | None = None
    """What the user expects of its best value; None for nothing."""


class Constraint(Protocol):
    """Constraint between the parameters of a space."""

    @property
    def text(self) -> str:
        """Text of the user, for errors."""
        ...

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the root that the constraint depends on."""
        ...

    def holds(self, configuration: JsonValue) -> bool:
        """Return whether a configuration is feasible; true if a named parameter is inactive."""
        ...


@dataclass(frozen=True, slots=True)
class Space:
    """Parameters of one level; branches of choices hold nested spaces."""

    parameters: tuple[Parameter, ...]
    rules: tuple[Constraint, ...] = ()
    """Constraints on whole configurations; held by the root, for all levels."""
    anchor: dict[str, JsonValue] | None = field(default=None, compare=False, repr=False)
    """A feasible configuration; None if there are no constraints."""
    has_priors: bool = field(init=False, compare=False, repr=False)
    """True if any parameter, those of branches included, has a user prior."""
    keys: frozenset[str] = field(init=False, compare=False, repr=False)
    """Keys of the parameters of this level."""

    def __post_init__(self) -> None:
        """Look for user priors; collect the keys."""
        object.__setattr__(self, "keys", frozenset(entry.key for entry in self.parameters))
        object.__setattr__(self, "has_priors", any(map(_has_prior, self.parameters)))

    def broken(self, configuration: JsonValue) -> Constraint | None:
        """Return the first constraint that a configuration violates; None if it is feasible."""
        for rule in self.rules:
            if not rule.holds(configuration):
                return rule
        return None

    def allows(self, configuration: JsonValue) -> bool:
        """Return whether a configuration, possibly partial, violates no constraint."""
        return not self.rules or self.broken(configuration) is None

    def draw(self, rng: Random) -> dict[str, JsonValue]:
        """Return a random feasible configuration; with user priors, half of the draws follow them.

        It is one of the user priors, or of the distribution of the space, with equal chances; of
        the latter always where there is no user prior.
        """
        by_prior = self.has_priors and rng.random() < PRIOR_SHARE
        if not self.rules:
            return _values(self, rng, by_prior=by_prior)
        for _ in range(_DRAWS):
            configuration = _values(self, rng, by_prior=by_prior)
            if self.allows(configuration):
                return configuration
        return self._random_walk(rng, by_prior=by_prior)

    def _random_walk(self, rng: Random, *, by_prior: bool) -> dict[str, JsonValue]:
        """Return a feasible configuration by a random walk, for spaces with a small feasible part.

        Each step resamples one value and is rejected if infeasible: a Gibbs-like chain whose
        stationary distribution is the prior restricted to feasible configurations.
        """
        assert self.anchor is not None
        configuration = copy.deepcopy(self.anchor)
        for _ in range(_WALK_STEPS):
            places = active_places(self, configuration)
            values, parameter = places[rng.randrange(len(places))]
            old = values[parameter.key]
            values[parameter.key] = _draw(parameter, rng, by_prior=by_prior)
            if not self.allows(configuration):
                values[parameter.key] = old
        return configuration


def active_places(
    space: Space, values: dict[str, JsonValue]
) -> list[tuple[dict[str, JsonValue], Parameter]]:
    """Return the active parameters of a configuration, each with the dict that holds its value."""
    found: list[tuple[dict[str, JsonValue], Parameter]] = []
    for parameter in space.parameters:
        found.append((values, parameter))
        if isinstance(parameter.domain, ChoiceDomain):
            value = values[parameter.key]
            option = parameter.domain.options[parameter.domain.position(value)]
            if isinstance(option, Branch):
                found += active_places(option.space, value)
    return found


def _values(space: Space, rng: Random, *, by_prior: bool) -> dict[str, JsonValue]:
    """Return one sample, by the user priors where there are any; constraints are not regarded."""
    return {one.key: _draw(one, rng, by_prior=by_prior) for one in space.parameters}


def _draw(parameter: Parameter, rng: Random, *, by_prior: bool) -> JsonValue:
    domain, prior = parameter.domain, parameter.prior if by_prior else None
    if not isinstance(domain, ChoiceDomain):
        if not isinstance(prior, NumberPrior) or isinstance(domain, NormalDomain):
            return domain.draw(rng)
        return domain.at(prior.draw(rng))
    if isinstance(prior, OptionPrior):
        option = domain.options[prior.draw(rng)]
    else:
        option = domain.options[rng.randrange(len(domain.options))]
    if isinstance(option, Branch):
        return {"_name": option.name, **_values(option.space, rng, by_prior=by_prior)}
    return option


def _has_prior(parameter: Parameter) -> bool:
    if parameter.prior is not None:
        return True
    domain = parameter.domain
    return isinstance(domain, ChoiceDomain) and any(
        branch is not None and branch.space.has_priors for branch in domain.branches()
    )
