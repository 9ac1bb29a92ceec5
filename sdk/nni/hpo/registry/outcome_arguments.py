"""Arguments of tuners that need one objective, without limits on outcomes, and their check.

Standard library only, so that a configuration is checked without numpy.
"""

from collections.abc import Mapping
from typing import Final

from nni.hpo.registry.cost_arguments import COST_AWARE

ROBUST: Final = "robust"
_OF_ONE_LOSS: Final = (COST_AWARE, ROBUST)


def check_single_outcome(arguments: Mapping[str, object] | None, *, several_outcomes: bool) -> None:
    """Raise ValueError if an argument needs one objective, and there are several outcomes.

    Args:
        arguments: of the tuner; None for none.
        several_outcomes: whether there are several objectives, or limits on outcomes.

    Raises:
        ValueError: an argument that needs one objective is true, with several outcomes.

    Examples:
        >>> check_single_outcome({"robust": True}, several_outcomes=True)
        Traceback (most recent call last):
        ValueError: robust must be false with several objectives or limits on outcomes, got True;
        leave it out, or optimise one metric without limits
    """
    for name in _OF_ONE_LOSS:
        if several_outcomes and (arguments or {}).get(name):
            raise ValueError(
                f"{name} must be false with several objectives or limits on outcomes, got True; "
                "leave it out, or optimise one metric without limits"
            )
