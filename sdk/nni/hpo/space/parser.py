"""Parser of search spaces, and validation of configurations against a space."""

import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Set
from typing import Final, NoReturn

from nni.hpo.json_value import JsonValue
from nni.hpo.space._prior_reader import read_prior
from nni.hpo.space.constraints import constrained, shown_text
from nni.hpo.space.domains import (
    CONSTRAINTS_KEY,
    Branch,
    ChoiceDomain,
    Domain,
    IntegerDomain,
    NormalDomain,
    Parameter,
    Space,
    UniformDomain,
)
from nni.hpo.space.user_priors import PRIOR_KEY, TUNERS_WITH_PRIORS, UserPrior

ALL_TYPES: Final = (
    "choice",
    "randint",
    "uniform",
    "quniform",
    "loguniform",
    "qloguniform",
    "normal",
    "qnormal",
    "lognormal",
    "qlognormal",
)
"""All `_type`s of the search space language."""

RESERVED_KEYS: Final = frozenset({"_name", CONSTRAINTS_KEY})
"""Names that are forbidden for hyperparameters of all tuners."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

_PAIR = 2  # values of a range without a step
_TRIPLE = 3  # values of a range with one
_LARGEST: Final = sys.float_info.max
"""Larger integers have no float."""


def parse_space(
    search_space: object,
    *,
    algorithm: str = "this tuner",
    types: tuple[str, ...] = ALL_TYPES,
    nested: bool = True,
    reserved: frozenset[str] = frozenset(),
    priors: bool = True,
) -> Space:
    """Parse and validate a search space, its constraints included; ValueError says what is wrong.

    Args:
        search_space: dict of name to `{"_type": ..., "_value": [...]}`; perhaps with constraints
            under the key `_constraints`, see `nni.hpo.space.constraints`.
        algorithm: name used in errors.
        types: the supported `_type`s.
        nested: whether branches, dict options with a `_name`, are supported. Other dict options
            are plain values.
        reserved: forbidden names, besides `RESERVED_KEYS`.
        priors: whether user priors, the key `_prior` of a parameter, are supported.

    Returns:
        The space, with its constraints.

    Raises:
        ValueError: the space breaks a rule; the message names parameter, rule and value.

    Examples:
        >>> from nni.hpo.space import parse_space
        >>> space = parse_space({"x": {"_type": "uniform", "_value": [0, 1]}})
        >>> [parameter.path for parameter in space.parameters]
        ['x']
        >>> space.allows({"x": 0.5})
        True
    """
    reader = _Reader(
        algorithm, types, nested=nested, reserved=reserved | RESERVED_KEYS, priors=priors
    )
    if not isinstance(search_space, dict) or CONSTRAINTS_KEY not in search_space:
        return reader.space(search_space, ())
    entries = {key: entry for key, entry in search_space.items() if key != CONSTRAINTS_KEY}
    return constrained(reader.space(entries, ()), search_space[CONSTRAINTS_KEY])


class _Reader:
    """Recursive parser of one search space for one algorithm."""

    def __init__(
        self,
        algorithm: str,
        types: tuple[str, ...],
        *,
        nested: bool,
        reserved: frozenset[str],
        priors: bool,
    ) -> None:
        self._algorithm = algorithm
        self._types = types
        self._nested = nested
        self._reserved = reserved
        self._priors = priors

    def space(self, entries: object, where: tuple[str, ...]) -> Space:
        if not isinstance(entries, dict):
            raise ValueError(  # noqa: TRY004 - one type for all faults of an input
                "search space must be a dict of name to {'_type': ..., '_value': [...]}, "
                f"got {type(entries).__name__} {entries!r:.200}"
            )
        return Space(tuple(self._parameter(key, entry, where) for key, entry in entries.items()))

    def _parameter(self, key: object, entry: object, where: tuple[str, ...]) -> Parameter:
        if not isinstance(key, str):
            raise ValueError(f"search space: names must be strings, got {key!r}")  # noqa: TRY004 - one type for all faults of an input
        path = "/".join((*where, key))
        if key in self._reserved:
            _refuse(path, f"name {key!r} is reserved in {self._algorithm}; rename the parameter")
        if not isinstance(entry, dict) or "_type" not in entry or "_value" not in entry:
            _refuse(path, f"must be {{'_type': ..., '_value': [...]}}, got {entry!r:.200}")
        kind = entry["_type"]
        if kind not in ALL_TYPES:
            _refuse(path, f"_type must be one of {', '.join(ALL_TYPES)}; got {kind!r}")
        if kind not in self._types:
            _refuse(
                path,
                f"_type {kind!r} is not supported by {self._algorithm}; "
                f"it supports {', '.join(self._types)}",
            )
        values = entry["_value"]
        if not isinstance(values, list | tuple):
            _refuse(path, f"_value of {kind} must be a list, got {values!r:.200}")
        domain = self._domain(kind, list(values), path, (*where, key))
        return Parameter(key, path, kind, domain, self._prior(kind, domain, entry, path))

    def _prior(
        self, kind: str, domain: Domain, entry: dict[JsonValue, JsonValue], path: str
    ) -> UserPrior | None:
        given = entry.get(PRIOR_KEY)
        if given is None:
            return None
        if not self._priors:
            _refuse(
                path,
                f"{PRIOR_KEY} is not supported by {self._algorithm}, got {given!r:.200}; remove "
                f"it, or use one of {', '.join(TUNERS_WITH_PRIORS)}",
            )
        try:
            return read_prior(kind, domain, given)
        except ValueError as error:
            _refuse(path, str(error))

    def _domain(self, kind: str, values: list[object], path: str, where: tuple[str, ...]) -> Domain:
        if kind == "choice":
            return self._choice(values, path, where)
        if kind == "randint":
            return _integer(values, path)
        if kind.endswith("normal"):
            return _normal(kind, values, path)
        return _uniform(kind, values, path)

    def _choice(self, options: list[object], path: str, where: tuple[str, ...]) -> ChoiceDomain:
        if not options:
            _refuse(path, "_value of choice must hold at least one option, got []")
        names: set[str] = set()
        parsed: list[object] = []
        for option in options:
            if not isinstance(option, dict) or _is_plain(option):
                parsed.append(option)
                continue
            branch = self._branch(option, path, where)
            if branch.name in names:
                _refuse(path, f"_name must be unique within a choice, got {branch.name!r} twice")
            names.add(branch.name)
            parsed.append(branch)
        try:
            return ChoiceDomain(tuple(parsed))
        except (TypeError, ValueError) as error:
            _refuse(path, f"options must be JSON values ({error}), got {options!r:.200}")

    def _branch(
        self, option: dict[JsonValue, JsonValue], path: str, where: tuple[str, ...]
    ) -> Branch:
        name = option.get("_name")
        if not isinstance(name, str):
            _refuse(
                path,
                "a dict option with parameters must hold '_name', a string that identifies the "
                f"branch; got {option!r:.200}",
            )
        if not self._nested:
            _refuse(path, f"nested choice is not supported by {self._algorithm}")
        entries = {key: entry for key, entry in option.items() if key != "_name"}
        return Branch(name, self.space(entries, (*where, name)))


def _is_plain(option: dict[JsonValue, JsonValue]) -> bool:
    """Return whether a dict option is a value as it stands, and no branch with parameters."""
    return "_name" not in option and not any(
        isinstance(entry, dict) and "_type" in entry for entry in option.values()
    )


def _refuse(path: str, reason: str) -> NoReturn:
    raise ValueError(f"search space, parameter {path!r}: {reason}")


def _numbers(kind: str, values: list[object], names: tuple[str, ...], path: str) -> list[float]:
    if len(values) != len(names):
        _refuse(path, f"_value of {kind} must be [{', '.join(names)}], got {values!r:.200}")
    return [_number(value, name, path) for value, name in zip(values, names, strict=True)]


def _number(value: object, name: str, path: str) -> float:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)  # YAML 1.1 readers leave 1e-5 a string
    if isinstance(value, bool) or not isinstance(value, int | float):
        _refuse(path, f"{name} must be a number, got {value!r}")
    if abs(value) > _LARGEST or math.isnan(value):
        _refuse(path, f"{name} must be finite, got {value!r:.80}")
    return value


def _step(values: list[float], path: str) -> float | None:
    if len(values) != _TRIPLE:
        return None
    if values[2] <= 0:
        _refuse(path, f"q must be > 0, got {values[2]!r}")
    return float(values[2])


def _integer(values: list[object], path: str) -> IntegerDomain:
    if len(values) == 1:
        warnings.warn(
            f"search space, parameter {path!r}: randint with one number is an old form of "
            f"[0, {values[0]!r}]; write both bounds",
            stacklevel=2,
        )
        values = [0, *values]
    lower, upper = _numbers("randint", values, ("lower", "upper"), path)
    if lower != int(lower) or upper != int(upper):
        _refuse(path, f"bounds of randint must be integers, got {values!r}")
    if lower >= upper:
        _refuse(path, f"randint needs lower < upper (upper is excluded), got {values!r}")
    return IntegerDomain(int(lower), int(upper))


def _uniform(kind: str, values: list[object], path: str) -> UniformDomain:
    names = ("low", "high", "q") if kind.startswith("q") else ("low", "high")
    numbers = _numbers(kind, values, names, path)
    low, high = numbers[:_PAIR]
    log = kind.endswith("loguniform")
    if low > high:
        _refuse(path, f"low must be <= high, got {values!r}")
    if not math.isfinite(high - low):
        _refuse(path, f"high - low must be a finite number, got {values!r}")
    if log and low <= 0:
        _refuse(path, f"low of {kind} must be > 0, got {low!r}")
    return UniformDomain(float(low), float(high), _step(numbers, path), log)


def _normal(kind: str, values: list[object], path: str) -> NormalDomain:
    names = ("mu", "sigma", "q") if kind.startswith("q") else ("mu", "sigma")
    numbers = _numbers(kind, values, names, path)
    mu, sigma = numbers[:_PAIR]
    if sigma <= 0:
        _refuse(path, f"sigma must be > 0, got {sigma!r}")
    return NormalDomain(float(mu), float(sigma), _step(numbers, path), kind.endswith("lognormal"))


def place(
    space: Space, configuration: object, *, ignore: frozenset[str] = frozenset()
) -> dict[str, object]:
    """Return active parameters by path, options by position; ValueError outside the space.

    The value of a choice is the position of its option; numbers are snapped to their domain, which
    removes rounding errors of a round trip through text.

    Args:
        space: space of the configuration.
        configuration: a configuration of a trial, or one that a user imports.
        ignore: keys of the top level that do not belong to the space.

    Returns:
        Path to value, for active parameters only.

    Raises:
        ValueError: the configuration lies outside the space; the message names the parameter.
    """
    found: dict[str, object] = {}
    _place(space, configuration, "", ignore, found)
    broken = space.broken(configuration)
    if broken is not None:
        raise ValueError(f"configuration breaks the constraint {shown_text(broken.text)}")
    return found


def _place(
    space: Space,
    configuration: object,
    where: str,
    ignore: frozenset[str],
    found: dict[str, object],
) -> None:
    if not isinstance(configuration, dict | Mapping):  # a check for dict alone is a fast one
        raise ValueError(f"{where or 'configuration'}: must be a dict, got {configuration!r:.200}")  # noqa: TRY004 - one type for all faults of an input
    keys: Set[object] = configuration.keys()
    given = keys - ignore if ignore else keys
    if given != space.keys:
        missing, surplus = sorted(space.keys - given), sorted(map(str, given - space.keys))
        raise ValueError(
            f"{where or 'configuration'}: keys must be those of the search space; "
            f"missing {missing}, unknown {surplus}"
        )
    for parameter in space.parameters:
        value, domain = configuration[parameter.key], parameter.domain
        try:
            if not isinstance(domain, ChoiceDomain):
                found[parameter.path] = domain.check(value)
                continue
            position = domain.position(value)
        except ValueError as error:
            raise ValueError(f"parameter {parameter.path!r}: {error}") from None
        found[parameter.path] = position
        option = domain.options[position]
        if isinstance(option, Branch):
            inside = f"parameter {parameter.path!r}"
            _place(option.space, value, inside, frozenset({"_name"}), found)


def contains(space: Space, configuration: object) -> bool:
    """Return whether a configuration lies in a space and keeps its constraints."""
    try:
        place(space, configuration)
    except ValueError:
        return False
    return True


def walk(space: Space) -> Iterator[Parameter]:
    """Yield all parameters depth first: those of branches after their choice."""
    for parameter in space.parameters:
        yield parameter
        if isinstance(parameter.domain, ChoiceDomain):
            for branch in parameter.domain.branches():
                if branch is not None:
                    yield from walk(branch.space)


SpaceCheck = Callable[[object], object]
"""Callable that raises ValueError for a search space that an algorithm does not support."""
