"""Arguments of cost-aware search: the tuners that have them, and their check.

Standard library only, so that a configuration is checked without numpy.
"""

from typing import Final

TUNERS_WITH_COSTS: Final = ("auto", "GPTuner")
"""Names of the tuners that take the run times of trials into account, for errors."""

COST_AWARE: Final = "cost_aware"
COST_BUDGET: Final = "cost_budget"

_UTILITY: Final = "utility"
_SIGNED_UTILITY: Final = "ucb"
"""Acquisition function that may be negative, so that a division by costs has no meaning."""


def check_cost_arguments(**arguments: object) -> None:
    """Raise ValueError unless the arguments of a tuner for cost-aware search fit together.

    Args:
        **arguments: values of all arguments of the tuner, defaults included.

    Raises:
        ValueError: there is a budget without cost-aware search, or the acquisition function may be
            negative.

    Examples:
        >>> check_cost_arguments(cost_aware=False, cost_budget=3600)
        Traceback (most recent call last):
        ValueError: cost_budget must be None unless cost_aware is true, got 3600; set cost_aware,
        or leave cost_budget out
    """
    aware, budget = arguments.get(COST_AWARE), arguments.get(COST_BUDGET)
    if budget is not None and not aware:
        raise ValueError(
            f"{COST_BUDGET} must be None unless {COST_AWARE} is true, got {budget!r}; set "
            f"{COST_AWARE}, or leave {COST_BUDGET} out"
        )
    if aware and arguments.get(_UTILITY) == _SIGNED_UTILITY:
        raise ValueError(
            f"{_UTILITY} must be 'ei' or 'poi' with {COST_AWARE}, got {_SIGNED_UTILITY!r}: a "
            f"confidence bound may be negative; choose one of these, or leave {COST_AWARE} out"
        )


def cost_hint(argument: str) -> str:
    """Return the hint for an unknown argument that belongs to cost-aware search; else ''."""
    if argument not in {COST_AWARE, COST_BUDGET}:
        return ""
    return f"; {argument} is an argument of {' and '.join(TUNERS_WITH_COSTS)}: use one of these"
