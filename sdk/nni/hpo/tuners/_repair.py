"""Repair of proposals that break a constraint: a similar configuration that keeps all."""

from copy import deepcopy
from random import Random
from typing import Final

from nni.hpo.encoding.columns import NumericColumn, levels_of
from nni.hpo.json_value import JsonValue
from nni.hpo.space.domains import ChoiceDomain, Space

_STEPS: Final = 8
"""Bisections between an allowed number and the wanted one."""


def repaired(space: Space, wanted: dict[str, JsonValue], rng: Random) -> dict[str, JsonValue]:
    """Return the wanted configuration if it is allowed, else an allowed one near it.

    Starts from an allowed draw and copies the wanted values one by one, in random order, where
    that is allowed; a number is moved towards the wanted one by bisection.

    Args:
        space: with constraints.
        wanted: a configuration of the space that may break constraints.
        rng: of the draws.
    """
    if space.allows(wanted):
        return wanted
    configuration = space.draw(rng)
    columns = {column.parameter.path: column for column in levels_of(space)[0].numeric}
    order = list(space.parameters)
    rng.shuffle(order)
    for parameter in order:
        key, old = parameter.key, configuration[parameter.key]
        configuration[key] = deepcopy(wanted[key])
        if space.allows(configuration):
            continue
        configuration[key] = old
        if isinstance(parameter.domain, ChoiceDomain):
            _take_over_branch(space, configuration, key, wanted[key], rng)
        else:
            _approach(space, configuration, key, wanted[key], columns[parameter.path])
    return configuration


def _take_over_branch(
    space: Space, configuration: dict[str, JsonValue], key: str, wanted: JsonValue, rng: Random
) -> None:
    """Copy the allowed values within a branch that both configurations have."""
    inner = configuration[key]
    if not isinstance(inner, dict) or not isinstance(wanted, dict):
        return
    if inner.get("_name") != wanted.get("_name"):
        return
    for name in rng.sample(sorted(wanted), len(wanted)):
        old, inner[name] = inner[name], deepcopy(wanted[name])
        if not space.allows(configuration):
            inner[name] = old


def _approach(
    space: Space,
    configuration: dict[str, JsonValue],
    key: str,
    wanted: JsonValue,
    column: NumericColumn,
) -> None:
    """Move a number towards the wanted one by bisection, as far as is allowed."""
    allowed, beyond = column.coordinate(configuration[key]), column.coordinate(wanted)
    for _ in range(_STEPS):
        middle = 0.5 * (allowed + beyond)
        old, configuration[key] = configuration[key], column.value(middle)
        if space.allows(configuration):
            allowed = middle
        else:
            configuration[key], beyond = old, middle
