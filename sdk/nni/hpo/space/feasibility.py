"""Whether configurations that no algorithm made keep the constraints of their search space."""

from collections.abc import Sequence

from nni.hpo.json_value import JsonValue
from nni.hpo.space.constraints import (
    ExpressionConstraint,
    ForbiddenCombination,
    InfeasibleSpaceError,
    Reference,
    declared_rules,
    read_rules,
)
from nni.hpo.space.domains import CONSTRAINTS_KEY
from nni.hpo.space.parser import parse_space

_KEY = "combine_params"


def combine_params(search_space: object) -> list[dict[str, JsonValue]]:
    """Return the configurations of a batch tuner's space that its constraints allow.

    Raises:
        ValueError: the space is not `{"combine_params": {"_type": "choice", "_value": [...]}}`
            with a non-empty list of dicts without `_name`, or its `_constraints` allow none.
    """
    form = f"{{'{_KEY}': {{'_type': 'choice', '_value': [configurations]}}}}"
    if not isinstance(search_space, dict) or search_space.keys() - {CONSTRAINTS_KEY} != {_KEY}:
        raise ValueError(f"search space of BatchTuner must be {form}, got {search_space!r:.200}")
    entry = search_space[_KEY]
    if not isinstance(entry, dict) or entry.get("_type") != "choice":
        raise ValueError(f"parameter {_KEY!r}: _type must be 'choice', got {entry!r:.200}")
    options = entry.get("_value")
    if not isinstance(options, list) or not options:
        raise ValueError(f"parameter {_KEY!r}: _value must be a non-empty list, got {options!r}")
    for option in options:
        if not isinstance(option, dict) or "_name" in option:
            raise ValueError(
                f"parameter {_KEY!r}: every option must be a complete configuration, a dict "
                f"without '_name'; got {option!r:.200}"
            )
    return _allowed(options, search_space.get(CONSTRAINTS_KEY, ()))


def option_names(options: list[dict[str, JsonValue]]) -> dict[str, Reference]:
    """Return the names that constraints on the configurations of a batch may use."""
    return {str(key): Reference((key,)) for option in options for key in option}


def _allowed(
    options: list[dict[str, JsonValue]], constraints: object
) -> list[dict[str, JsonValue]]:
    """Return the options that keep all constraints; their names are the keys of the options.

    Raises:
        ValueError: a constraint breaks a rule, or none of the options keeps them.
    """
    rules = read_rules(constraints, option_names(options))
    allowed = [option for option in options if all(rule.holds(option) for rule in rules)]
    if not allowed:
        raise InfeasibleSpaceError(
            f"search space, {CONSTRAINTS_KEY}: none of {len(options)} configurations keeps all of "
            f"{[rule.text for rule in rules]}"
        )
    return allowed


def rules_of(search_space: JsonValue) -> tuple[ExpressionConstraint | ForbiddenCombination, ...]:
    """Return the constraints of a search space, in the usual language or that of BatchTuner.

    Args:
        search_space: one that is none of these, as a custom tuner may have it, has none.
    """
    if not isinstance(search_space, dict) or CONSTRAINTS_KEY not in search_space:
        return ()
    declared = search_space[CONSTRAINTS_KEY]
    entries = {key: entry for key, entry in search_space.items() if key != CONSTRAINTS_KEY}
    try:
        return read_rules(declared, option_names(combine_params(entries)))
    except ValueError:
        pass
    try:
        return declared_rules(parse_space(entries), declared)
    except ValueError:
        return ()


def broken_constraints(search_space: JsonValue, configurations: Sequence[JsonValue]) -> list[str]:
    """Return per configuration the first constraint that it breaks, as text; empty if none."""
    rules = rules_of(search_space)
    return [
        next((rule.text for rule in rules if not rule.holds(configuration)), "")
        for configuration in configurations
    ]
