"""Constraints for any search space, for the suites of those who write algorithms."""

from random import Random
from statistics import median_low

from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import CONSTRAINTS_KEY, Branch, ChoiceDomain, Parameter, Space
from nni.hpo.space.parser import parse_space

_DRAWS = 9
_MOST_NUMBERS = 2
"""Numbers that are constrained: each halves what is allowed."""


def constrained_space(search_space: JsonValue) -> JsonValue:
    """Return the space with constraints that leave about a quarter of it.

    Args:
        search_space: in the usual language, without constraints. One without parameters is
            returned as it is.
    """
    space = parse_space(search_space)
    draws = [space.draw(Random(seed)) for seed in range(_DRAWS)]
    numbers = [p.key for p in space.parameters if not isinstance(p.domain, ChoiceDomain)]
    constraints: list[JsonValue] = [
        f"`{key}` <= {median_low(draw[key] for draw in draws)!r}" for key in numbers[:_MOST_NUMBERS]
    ]
    constraints += _forbidden(space)
    if not constraints:
        return search_space
    return {**search_space, CONSTRAINTS_KEY: constraints}


def _forbidden(space: Space) -> list[JsonValue]:
    choices = [p for p in space.parameters if isinstance(p.domain, ChoiceDomain)]
    several = [p for p in choices if len(_options(p)) > 1]
    if not several:
        return []
    first = several[0]
    found: list[JsonValue] = [{"_forbid": {first.key: _options(first)[0]}}]
    if len(several) > 1:
        found.append({"_forbid": {p.key: _options(p)[-1] for p in several[:2]}})
    return found


def _options(parameter: Parameter) -> list[JsonValue]:
    """Return the options of a choice that differ; of a branch its name."""
    assert isinstance(parameter.domain, ChoiceDomain)
    options = parameter.domain.options
    return [
        option.name if isinstance(option, Branch) else option
        for position, option in enumerate(options)
        if isinstance(option, Branch) or parameter.domain.position(option) == position
    ]
