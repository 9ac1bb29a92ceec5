"""The one number that algorithms optimise, taken from what a trial reported."""

import math
from typing import Final, SupportsFloat

from nni.hpo.optimize_mode import OptimizeMode

_NUMERIC: Final = (float, int, SupportsFloat)
"""The usual ones first: to find out whether a type has the method takes ten times as long."""


def scalar_metric(value: object) -> float | None:
    """Return the number that `value` stands for.

    Args:
        value: a number, or a dict whose `default` is one.

    Returns:
        A finite float, or None where there is no such number: missing, not numeric, NaN or
        infinite. Such a value is legal to report and must not enter a model.
    """
    if isinstance(value, dict):
        value = value.get("default")
    if isinstance(value, bool) or not isinstance(value, _NUMERIC):
        return None  # also str: float("1") would be no number that was reported
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):  # a huge int, or an array of several numbers
        return None
    return number if math.isfinite(number) else None


def is_numeric(value: object) -> bool:
    """Whether `value` is a number, finite or not, or a dict whose `default` is one."""
    if isinstance(value, dict):
        value = value.get("default")
    return isinstance(value, _NUMERIC) and not isinstance(value, bool)


def loss_of(value: object, optimize_mode: OptimizeMode) -> float | None:
    """Return the number to be minimised, or None as `scalar_metric` does."""
    number = scalar_metric(value)
    if number is None:
        return None
    return -number if optimize_mode == "maximize" else number
