"""Whether configurations that no algorithm made keep the constraints of their search space."""

from collections.abc import Sequence

from nni.hpo.constraints import Comparison, Forbidden, declared_rules, read_rules
from nni.hpo.domains import CONSTRAINTS_KEY
from nni.hpo.json_value import JsonValue
from nni.hpo.space import parse_space
from nni.hpo.tuners.batch import combine_params, option_names


def rules_of(search_space: JsonValue) -> tuple[Comparison | Forbidden, ...]:
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
