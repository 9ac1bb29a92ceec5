"""Feasibility of configurations that users give, and spaces that are lists of configurations."""

from collections.abc import Sequence

from nni.hpo.json_value import JsonValue
from nni.hpo.space.constraints import (
    ExpressionConstraint,
    ForbiddenCombination,
    InfeasibleSpaceError,
    Reference,
    declared_rules,
    read_rules,
    shown_text,
)
from nni.hpo.space.domains import CONSTRAINTS_KEY, Space
from nni.hpo.space.parser import parse_space
from nni.hpo.space.user_priors import PRIOR_KEY

_KEY = "combine_params"


def combine_params(search_space: object) -> list[dict[str, JsonValue]]:
    """Return the feasible configurations of a batch tuner's space; ValueError for another space.

    The one key of the space is `combine_params` by custom; any other one will do.

    Raises:
        ValueError: the space is not `{"combine_params": {"_type": "choice", "_value": [...]}}`
            with a non-empty list of dicts without `_name`, or none of them is feasible.
    """
    form = f"{{'{_KEY}': {{'_type': 'choice', '_value': [configurations]}}}}"
    keys = search_space.keys() - {CONSTRAINTS_KEY} if isinstance(search_space, dict) else ()
    if not isinstance(search_space, dict) or len(keys) != 1:
        raise ValueError(f"search space of BatchTuner must be {form}, got {search_space!r:.200}")
    (key,) = keys
    entry = search_space[key]
    if not isinstance(entry, dict) or entry.get("_type") != "choice":
        raise ValueError(
            f"search space of BatchTuner, parameter {key!r}: _type must be 'choice', "
            f"got {entry!r:.200}"
        )
    if entry.get(PRIOR_KEY) is not None:
        raise ValueError(
            f"search space of BatchTuner, parameter {key!r}: {PRIOR_KEY} is not supported, got "
            f"{entry[PRIOR_KEY]!r:.200}; remove it: every configuration is proposed"
        )
    options = entry.get("_value")
    if not isinstance(options, list) or not options:
        raise ValueError(
            f"search space of BatchTuner, parameter {key!r}: _value must be a non-empty list, "
            f"got {options!r:.200}"
        )
    for option in options:
        if not isinstance(option, dict) or "_name" in option:
            raise ValueError(
                f"search space of BatchTuner, parameter {key!r}: every option must be a complete "
                f"configuration, a dict without '_name'; got {option!r:.200}"
            )
    return _feasible(options, search_space.get(CONSTRAINTS_KEY, ()))


def read_parameters(search_space: JsonValue) -> Space:
    """Parse a space; raise ValueError for a list of configurations under `combine_params`.

    A choice of dicts under another key than `combine_params` is a parameter, except for
    `BatchTuner`.

    Raises:
        ValueError: the space is malformed, or a list of configurations under `combine_params`,
            which is no parameter.
    """
    space = parse_space(search_space)
    if not isinstance(search_space, dict) or _KEY not in search_space:
        return space
    try:
        combine_params(search_space)
    except ValueError:
        return space
    raise ValueError("a list of configurations has no parameters")


def option_names(options: list[dict[str, JsonValue]]) -> dict[str, Reference]:
    """Return the names, with paths, that constraints on a list of configurations may use."""
    return {str(key): Reference((key,)) for option in options for key in option}


def _feasible(
    options: list[dict[str, JsonValue]], constraints: object
) -> list[dict[str, JsonValue]]:
    """Return the options that satisfy all constraints, which name their keys; raise if none does.

    Raises:
        ValueError: a constraint is malformed, or no option is feasible.
    """
    rules = read_rules(constraints, option_names(options))
    feasible = [option for option in options if all(rule.holds(option) for rule in rules)]
    if not feasible:
        raise InfeasibleSpaceError(
            f"search space, {CONSTRAINTS_KEY}: none of {len(options)} configurations keeps all of "
            f"{[rule.text for rule in rules]}"
        )
    return feasible


def rules_of(search_space: JsonValue) -> tuple[ExpressionConstraint | ForbiddenCombination, ...]:
    """Return the constraints of a search space, usual or BatchTuner's; none if it is malformed.

    Args:
        search_space: the space; one in a custom tuner's own form has no constraints.
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
    """Return the first violated constraint per configuration, as shown; empty if feasible."""
    rules = rules_of(search_space)
    return [
        next((shown_text(rule.text) for rule in rules if not rule.holds(configuration)), "")
        for configuration in configurations
    ]
