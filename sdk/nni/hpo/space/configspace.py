"""Conversion of search spaces to ConfigSpace and back, with conditions and forbidden clauses.

Needs the extra `nni[configspace]`; the package is imported by the first call.

A nested hyperparameter has its path as name, `model/deep/layers`, and is active on the condition
that its choice selects the branch. Options other than strings become their JSON texts; quantised
ranges become ordinals if they are short; a lognormal one becomes the normal of its logarithm.
`parameters_of` converts a configuration to the parameters of a trial. A space of `to_configspace`
is converted back without loss; other ConfigSpaces as far as search spaces can express them.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Final

from nni.hpo.json_value import JsonValue
from nni.hpo.space._configspace_reader import META_KEY, from_configspace
from nni.hpo.space.constraints import FORBID_KEY
from nni.hpo.space.domains import (
    CONSTRAINTS_KEY,
    Branch,
    ChoiceDomain,
    Domain,
    IntegerDomain,
    NormalDomain,
    NumericDomain,
    Parameter,
    Space,
    canonical_json,
)
from nni.hpo.space.parser import parse_space, place, walk

__all__ = ["from_configspace", "parameters_of", "to_configspace"]

_MOST_STEPS: Final = 1000
"""Most values of a quantised range that becomes an ordinal."""
_TAILS: Final = 8.0
"""Standard deviations at which a normal distribution is truncated, as ConfigSpace requires."""

_NAME: Final = r"`[^`]+`|[^\W\d]\w*(?:/[^\W\d]\w*)*"
_NUMBER: Final = r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RELATION: Final = re.compile(
    rf"\s*(?P<left>{_NAME})\s*(?P<operator><=|>=|<|>)\s*(?:(?P<number>{_NUMBER})|(?P<right>{_NAME}))\s*"
)


@dataclass(frozen=True, slots=True)
class Relation:
    """Comparison `left operator right` of a hyperparameter."""

    left: str
    """Name of a hyperparameter."""
    operator: str
    """Comparison: < <= > or >=."""
    right: str | float
    """Name of another hyperparameter, or a number."""


def relation_of(text: str) -> Relation | None:
    """Return a constraint as a simple comparison; None if it has another form."""
    match = _RELATION.fullmatch(text)
    if match is None:
        return None
    right = float(match["number"]) if match["number"] else match["right"].strip("`")
    return Relation(match["left"].strip("`"), match["operator"], right)


def to_configspace(
    search_space: JsonValue, *, name: str | None = None, seed: int | None = None
) -> Any:  # noqa: ANN401 - ships no types
    """Convert a search space to a `ConfigSpace.ConfigurationSpace`; ValueError without equivalent.

    Args:
        search_space: the space in JSON.
        name: name of the result.
        seed: seed of its samples.

    Returns:
        The ConfigSpace, with conditions and forbidden clauses.

    Raises:
        ValueError: the space breaks a rule, or has a constraint that is neither a forbidden
            combination nor a comparison of a hyperparameter with another one or with a number; or
            compares a lognormal one with another type, or with a number that is not positive.
        ImportError: ConfigSpace is not installed; `pip install 'nni[configspace]'` does that.

    Examples:
        >>> from nni.hpo.space.configspace import to_configspace
        >>> space = to_configspace({"depth": {"_type": "randint", "_value": [1, 9]}}, seed=0)
        >>> space["depth"].upper
        8
    """
    import ConfigSpace

    space = parse_space(search_space)
    made = ConfigSpace.ConfigurationSpace(name=name, seed=seed)
    allowed = {} if space.anchor is None else place(space, space.anchor)
    for parameter, entry in _entries(space, search_space):
        made.add(_hyperparameter(parameter, entry, allowed))
    for parameter, branch in _branches(space):
        for inner in branch.space.parameters:
            made.add(
                ConfigSpace.EqualsCondition(made[inner.path], made[parameter.path], branch.name)
            )
    for constraint in search_space.get(CONSTRAINTS_KEY, ()):
        made.add(*_clauses(made, space, constraint))
    return made


def _entries(space: Space, entries: JsonValue) -> Iterator[tuple[Parameter, JsonValue]]:
    """Yield each parameter with its JSON entry, depth first into the branches of choices."""
    for parameter in space.parameters:
        entry = entries[parameter.key]
        yield parameter, entry
        if isinstance(parameter.domain, ChoiceDomain):
            for branch, option in zip(parameter.domain.branches(), entry["_value"], strict=True):
                if branch is not None:
                    yield from _entries(branch.space, option)


def _branches(space: Space) -> Iterator[tuple[Parameter, Branch]]:
    """Yield all branches, at any depth, each with its choice."""
    for parameter in walk(space):
        if isinstance(parameter.domain, ChoiceDomain):
            for branch in parameter.domain.branches():
                if branch is not None:
                    yield parameter, branch


def _hyperparameter(parameter: Parameter, entry: JsonValue, allowed: Mapping[str, object]) -> Any:  # noqa: ANN401 - ships no types
    """Convert a parameter to a hyperparameter of ConfigSpace; a single value to a constant.

    Args:
        parameter: the parameter.
        entry: its entry in JSON.
        allowed: a feasible configuration as of `place`, since ConfigSpace requires feasible
            defaults. Empty without constraints.
    """
    import ConfigSpace

    path, domain = parameter.path, parameter.domain
    own: dict[str, Any] = {"meta": {META_KEY: {"key": parameter.key, "entry": entry}}}
    default: Any = allowed.get(path)
    if isinstance(domain, ChoiceDomain):
        texts = list(dict.fromkeys(map(_option_text, domain.options)))
        if default is not None:
            own["default_value"] = _option_text(domain.options[default])
        return ConfigSpace.CategoricalHyperparameter(path, texts, **own)
    low, high = _bounds(domain)
    if low == high:
        return ConfigSpace.Constant(path, low, **own)
    if default is not None:
        own["default_value"] = _scaled(domain, default)
    if isinstance(domain, IntegerDomain):
        return ConfigSpace.UniformIntegerHyperparameter(path, int(low), int(high), **own)
    if isinstance(domain, NormalDomain):
        return ConfigSpace.NormalFloatHyperparameter(
            path, domain.mu, domain.sigma, low, high, **own
        )
    if domain.q is not None and not domain.log:
        first, last = domain.steps()
        if last - first < _MOST_STEPS:
            steps = [domain.snap(step * domain.q) for step in range(first, last + 1)]
            return ConfigSpace.OrdinalHyperparameter(path, list(dict.fromkeys(steps)), **own)
    return ConfigSpace.UniformFloatHyperparameter(path, low, high, log=domain.log, **own)


def _bounds(domain: NumericDomain) -> tuple[float, float]:
    if isinstance(domain, IntegerDomain):
        return domain.lower, domain.upper - 1
    if isinstance(domain, NormalDomain):
        return domain.mu - _TAILS * domain.sigma, domain.mu + _TAILS * domain.sigma
    return domain.low, domain.high


def _scaled(domain: Domain, value: float) -> float:
    """Return a value in the scale of ConfigSpace: the logarithm for lognormal types."""
    if isinstance(domain, NormalDomain) and domain.log:
        return math.log(value) if value > 0 else _bounds(domain)[0]
    return value


def _is_logarithm(domain: Domain) -> bool:
    """Return whether ConfigSpace has the logarithms of a domain's values."""
    return isinstance(domain, NormalDomain) and domain.log


def _option_text(option: object) -> str:
    if isinstance(option, Branch):
        return option.name
    return option if isinstance(option, str) else canonical_json(option)


def parameters_of(search_space: JsonValue, configuration: Mapping[str, Any]) -> JsonValue:
    """Convert a configuration of `to_configspace(search_space)` to the parameters of a trial.

    Args:
        search_space: the converted space.
        configuration: a `ConfigSpace.Configuration`, or a dict of the same keys.

    Returns:
        A configuration of the search space, in JSON.

    Raises:
        KeyError: an active hyperparameter is missing.
        ValueError: a value lies outside the space.

    Examples:
        >>> from nni.hpo.space.configspace import parameters_of
        >>> branch = {"_name": "tree", "depth": {"_type": "randint", "_value": [1, 9]}}
        >>> space = {"model": {"_type": "choice", "_value": [branch]}}
        >>> parameters_of(space, {"model": "tree", "model/tree/depth": 3})
        {'model': {'_name': 'tree', 'depth': 3}}
    """
    return _parameters(parse_space(search_space), configuration)


def _parameters(space: Space, configuration: Mapping[str, Any]) -> dict[str, JsonValue]:
    return {p.key: _value(p, configuration[p.path], configuration) for p in space.parameters}


def _value(parameter: Parameter, given: Any, configuration: Mapping[str, Any]) -> JsonValue:  # noqa: ANN401 - ships no types
    domain = parameter.domain
    if isinstance(domain, ChoiceDomain):
        for option in domain.options:
            if _option_text(option) == str(given):
                if isinstance(option, Branch):
                    return {"_name": option.name, **_parameters(option.space, configuration)}
                return option
        raise ValueError(f"parameter {parameter.path!r}: no option is {given!r}")
    if isinstance(domain, IntegerDomain):
        return domain.check(int(given))
    if isinstance(domain, NormalDomain):
        return domain.from_normal(float(given))
    return domain.snap(float(given))


def _clauses(made: Any, space: Space, constraint: JsonValue) -> list[Any]:  # noqa: ANN401 - ships no types
    """Convert a constraint to forbidden clauses; raise ValueError if ConfigSpace has no form."""
    import ConfigSpace

    by_path = {parameter.path: parameter for parameter in walk(space)}
    if isinstance(constraint, dict):
        combinations = product(
            *(
                [(made[path], _forbidden_value(by_path[path], value)) for path in paths]
                for paths, value in (
                    (_paths(space, name), value) for name, value in constraint[FORBID_KEY].items()
                )
            )
        )
        found = []
        for combination in combinations:
            clauses = [ConfigSpace.ForbiddenEqualsClause(h, value) for h, value in combination]
            several = len(clauses) > 1
            found.append(ConfigSpace.ForbiddenAndConjunction(*clauses) if several else clauses[0])
        return found
    relation = relation_of(constraint)
    if relation is None:
        raise ValueError(
            f"constraint {constraint!r} has no form in ConfigSpace: it must compare two "
            f"hyperparameters, or one with a number, or be a {{'{FORBID_KEY}': ...}}"
        )
    right = relation.right
    others = [by_path[p] for p in _paths(space, right)] if isinstance(right, str) else [right]
    return [
        _clause(made, by_path[path], relation.operator, other)
        for path in _paths(space, relation.left)
        for other in others
    ]


def _clause(made: Any, left: Parameter, operator: str, right: Parameter | float) -> Any:  # noqa: ANN401 - ships no types
    """Return the clause that forbids the complement of a relation; ValueError for mixed scales."""
    import ConfigSpace

    kind = {"<": "GreaterThanEquals", "<=": "GreaterThan", ">": "LessThanEquals", ">=": "LessThan"}
    word = kind[operator]
    if isinstance(right, Parameter):
        if _is_logarithm(left.domain) != _is_logarithm(right.domain):
            raise ValueError(
                f"constraint between {left.path!r} and {right.path!r} has no form in ConfigSpace, "
                "where only one of them is a logarithm"
            )
        return getattr(ConfigSpace, f"Forbidden{word}Relation")(made[left.path], made[right.path])
    if _is_logarithm(left.domain) and right <= 0:
        raise ValueError(
            f"constraint of {left.path!r} with {right!r} has no form in ConfigSpace, where its "
            "values are logarithms"
        )
    return getattr(ConfigSpace, f"Forbidden{word}Clause")(
        made[left.path], _scaled(left.domain, right)
    )


def _forbidden_value(parameter: Parameter, value: JsonValue) -> Any:  # noqa: ANN401 - ships no types
    domain = parameter.domain
    if isinstance(domain, ChoiceDomain):
        if any(branch is not None and branch.name == value for branch in domain.branches()):
            return value
        return _option_text(domain.options[domain.position(value)])
    return _scaled(domain, domain.check(value))


def _paths(space: Space, name: str) -> list[str]:
    """Return the paths of the hyperparameters that a name in a constraint refers to."""
    found = []
    plain = name.removesuffix("/_name")
    for path, short in _short_names(space, (), ()):
        if plain in {path, short}:
            found.append(path)
    return found


def _short_names(
    space: Space, path: tuple[str, ...], short: tuple[str, ...]
) -> Iterator[tuple[str, str]]:
    for parameter in space.parameters:
        yield "/".join((*path, parameter.key)), "/".join((*short, parameter.key))
        if isinstance(parameter.domain, ChoiceDomain):
            for branch in parameter.domain.branches():
                if branch is not None:
                    yield from _short_names(
                        branch.space,
                        (*path, parameter.key, branch.name),
                        (*short, parameter.key),
                    )
