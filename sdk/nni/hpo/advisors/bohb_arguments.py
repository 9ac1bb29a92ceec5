"""Checks of BOHB's arguments; needs no numpy, so that a configuration is checked quickly."""

from pathlib import Path, PurePath
from typing import Final

from nni.hpo.advisors._halving_advisor import flat_space
from nni.hpo.json_value import JsonValue
from nni.hpo.registry.validation import (
    OPTIMIZE_MODE,
    SEED,
    ArgumentRule,
    ClassArgsValidator,
    TableValidator,
    boolean,
    number,
    one_of,
)

_MAKE: Final = ClassArgsValidator()
_MANY: Final = 2**31 - 1
_SMALLEST: Final = 1e-12
"""Widths above zero."""

DEFAULT_MIN_BUDGET: Final = 1
DEFAULT_MAX_BUDGET: Final = 3
EXEC_MODES: Final = ("serial", "asynchronous")


def _is_pcs_file(value: JsonValue) -> bool:
    if not isinstance(value, str) or not PurePath(value).is_absolute():
        raise ValueError(f"config_space must be an absolute path, got {value!r}")
    if not Path(value).is_file():
        raise ValueError(f"config_space must be a file, got {value!r}")
    return True


_RULES: Final = {
    "optimize_mode": OPTIMIZE_MODE,
    "min_budget": number("min_budget", int, 1, _MANY),
    "max_budget": number("max_budget", int, 1, _MANY),
    "eta": number("eta", int, 2, _MANY),
    "min_points_in_model": ArgumentRule(
        _MAKE.range("min_points_in_model", int, 1, _MANY), nullable=True
    ),
    "top_n_percent": number("top_n_percent", int, 1, 99),
    "num_samples": number("num_samples", int, 1, _MANY),
    "random_fraction": number("random_fraction", float, 0, 1),
    "bandwidth_factor": number("bandwidth_factor", float, _SMALLEST, _MANY),
    "min_bandwidth": number("min_bandwidth", float, _SMALLEST, _MANY),
    "config_space": ArgumentRule(_is_pcs_file, nullable=True),
    "exec_mode": one_of("exec_mode", *EXEC_MODES),
    "checkpoints": boolean("checkpoints"),
    "seed": SEED,
}


class BOHBArguments(ClassArgsValidator):
    """Checks each argument by itself, and the two budgets together."""

    def validate_class_args(self, **kwargs: object) -> None:
        """See the base.

        Raises:
            ValueError: an argument is unknown or out of its range.
        """
        TableValidator("BOHB", _RULES).validate_class_args(**kwargs)
        least: JsonValue = kwargs.get("min_budget", DEFAULT_MIN_BUDGET)
        largest: JsonValue = kwargs.get("max_budget", DEFAULT_MAX_BUDGET)
        if largest <= least:
            raise ValueError(
                f"classArgs of BOHB: max_budget must be > min_budget = {least}, got {largest}"
            )


def check_space(search_space: object) -> None:
    """Raise ValueError for a search space that the advisor refuses."""
    flat_space(search_space, "BOHB")
