"""Conversion of search spaces and configurations to flat dicts and back.

A formatted configuration maps the key of each active parameter to a number: of a `choice` the
position of the option, of a `randint` the distance from its lower bound, of everything else the
value, or its logarithm where the type is logarithmic.
"""

import math
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import (
    ChoiceDomain,
    IntegerDomain,
    NormalDomain,
    Parameter,
    Space,
    UniformDomain,
)
from nni.hpo.space.parser import parse_space, place

ParameterKey: TypeAlias = tuple[str | int, ...]
"""Names from the root; behind the name of a choice the position of the option that is gone into."""

FormattedParameters: TypeAlias = dict[ParameterKey, float]


class ParameterSpec(NamedTuple):
    """Flat parameter of a search space: key, type, scale, bounds or number of options."""

    name: str
    """Key of the parameter in the dict that holds it."""
    type: str
    """`_type` of the parameter."""
    values: list[JsonValue]
    """`_value` of the parameter: options of a choice, else numbers."""
    key: ParameterKey
    """Unique within the space."""
    categorical: bool
    """True if it is a `choice` or a `randint`, which is formatted as a position."""
    size: int = 0
    """Number of positions, if the parameter is categorical."""
    low: float = math.nan
    """Least value on its scale, for bounded numbers."""
    high: float = math.nan
    """Greatest value on its scale, for bounded numbers."""
    normal_distributed: bool = False
    """True if it is one of the normal types."""
    mu: float = math.nan
    """Mean on its scale, for normal types."""
    sigma: float = math.nan
    """Standard deviation on its scale, for normal types."""
    q: float | None = None
    """Step of the values, for quantised types."""
    clip: tuple[float, float] | None = None
    """Bounds of the values themselves, for bounded numbers."""
    log_distributed: bool = False
    """True if its scale is logarithmic."""

    def is_activated_in(self, partial_parameters: Mapping[ParameterKey, float]) -> bool:
        """Return True if the enclosing choice, if any, took the option with this parameter.

        Args:
            partial_parameters: formatted; the choice in question must be in it, if it is active.
        """
        if len(self.key) < 3 or isinstance(self.key[-2], str):  # noqa: PLR2004 - choice, option, name
            return True
        return partial_parameters.get(self.key[:-2]) == self.key[-2]


FormattedSearchSpace: TypeAlias = dict[ParameterKey, ParameterSpec]


def format_search_space(search_space: JsonValue) -> FormattedSearchSpace:
    """Return a search space as a dict of key to specification, a choice before its branches.

    Raises:
        ValueError: the space breaks a rule.
    """
    specs: FormattedSearchSpace = {}
    _add(parse_space(search_space), (), search_space, specs)
    return specs


def _add(
    space: Space, where: ParameterKey, entries: JsonValue, specs: FormattedSearchSpace
) -> None:
    for parameter in space.parameters:
        key = (*where, parameter.key)
        values = list(entries[parameter.key]["_value"])
        specs[key] = _spec(parameter, values, key)
        if isinstance(parameter.domain, ChoiceDomain):
            for position, branch in enumerate(parameter.domain.branches()):
                if branch is not None:
                    _add(branch.space, (*key, position), values[position], specs)


def _spec(parameter: Parameter, values: list[JsonValue], key: ParameterKey) -> ParameterSpec:
    domain = parameter.domain
    spec = ParameterSpec(parameter.key, parameter.kind, values, key, categorical=False)
    if isinstance(domain, ChoiceDomain):
        return spec._replace(categorical=True, size=len(domain.options))
    if isinstance(domain, IntegerDomain):
        both = [domain.lower, domain.upper]
        return spec._replace(values=both, categorical=True, size=domain.upper - domain.lower)
    spec = spec._replace(q=domain.q, log_distributed=domain.log)
    if isinstance(domain, NormalDomain):
        return spec._replace(normal_distributed=True, mu=domain.mu, sigma=domain.sigma)
    low, high = domain.low, domain.high
    clip = (low, high)
    if domain.log:
        low, high = math.log(low), math.log(high)
    return spec._replace(low=low, high=high, clip=clip)


def format_parameters(
    parameters: JsonValue, formatted_search_space: FormattedSearchSpace
) -> FormattedParameters:
    """Return a nested configuration as a flat dict of key to number; raise if it is outside.

    Args:
        parameters: what a trial gets.
        formatted_search_space: of `format_search_space`.

    Raises:
        ValueError: the configuration lies outside the space.
    """
    formatted: FormattedParameters = {}
    for key, spec in formatted_search_space.items():
        if _is_active(spec, formatted):
            values = _level_of(key, parameters)
            if not isinstance(values, Mapping) or spec.name not in values:
                raise ValueError(f"parameter {spec.name!r}: must be in {parameters!r:.200}")
            formatted[key] = _formatted(spec, values[spec.name])
    return formatted


def _level_of(key: ParameterKey, parameters: JsonValue) -> JsonValue:
    """Return the nested dict, within the parameters, that holds the parameter of a key."""
    for name in key[:-1]:
        if isinstance(name, str):
            parameters = parameters[name]
    return parameters


def _is_active(spec: ParameterSpec, formatted: FormattedParameters) -> bool:
    inner = len(spec.key) > 2 and isinstance(spec.key[-2], int)  # noqa: PLR2004 - choice, option, name
    return spec.is_activated_in(formatted) and (not inner or spec.key[:-2] in formatted)


def _formatted(spec: ParameterSpec, value: JsonValue) -> float:
    entry = {"_type": spec.type, "_value": spec.values}
    space = parse_space({spec.name: entry})
    (parameter,) = space.parameters
    if isinstance(parameter.domain, ChoiceDomain):
        try:
            return parameter.domain.position(value)
        except ValueError as error:
            raise ValueError(f"parameter {spec.name!r}: {error}") from None
    found = place(space, {spec.name: value})[spec.name]
    assert isinstance(found, int | float)
    if isinstance(parameter.domain, IntegerDomain):
        return found - parameter.domain.lower
    if not spec.log_distributed:
        return found
    # Rounding to a step may give 0, which has no logarithm.
    return math.log(found) if found > 0 else math.log((spec.q or 1.0) / 4)


def deformat_parameters(
    formatted_parameters: Mapping[ParameterKey, float],
    formatted_search_space: FormattedSearchSpace,
) -> dict[str, JsonValue]:
    """Return the configuration of a flat form; numbers are rounded to steps and clipped.

    Numbers are rounded to their steps and clipped to their bounds. Keys of parameters that are not
    active are ignored.

    Args:
        formatted_parameters: key to number.
        formatted_search_space: of `format_search_space`.

    Raises:
        KeyError: an active parameter is missing.
    """
    parameters: dict[str, JsonValue] = {}
    active: FormattedParameters = {}
    for key, spec in formatted_search_space.items():
        if not _is_active(spec, active):
            continue
        active[key] = formatted_parameters[key]
        _level_of(key, parameters)[spec.name] = _value(spec, active[key])
    return parameters


def _value(spec: ParameterSpec, number: float) -> JsonValue:
    if spec.type == "choice":
        option = spec.values[int(number)]
        is_branch = isinstance(option, dict) and "_name" in option
        return {"_name": option["_name"]} if is_branch else option
    if spec.type == "randint":
        return int(number) + spec.values[0]
    domain = _domain_of(spec)
    if isinstance(domain, NormalDomain):
        return domain.from_normal(number)
    return domain.snap(math.exp(number) if spec.log_distributed else number)


def _domain_of(spec: ParameterSpec) -> UniformDomain | NormalDomain:
    if spec.normal_distributed:
        return NormalDomain(spec.mu, spec.sigma, spec.q, spec.log_distributed)
    assert spec.clip is not None
    return UniformDomain(*spec.clip, spec.q, spec.log_distributed)
