"""Search spaces of tuners whose models support numbers only; standard library only."""

import math
from typing import Final

from nni.hpo.space.domains import ChoiceDomain, Space
from nni.hpo.space.parser import parse_space

NUMERIC_TYPES: Final = ("choice", "randint", "uniform", "quniform", "loguniform", "qloguniform")
"""Types that GPTuner and DNGOTuner support."""

METIS_TYPES: Final = ("choice", "randint", "uniform", "quniform")
"""Types that MetisTuner supports."""


def is_finite_number(option: object) -> bool:
    """Return whether an option of a choice is a finite number; booleans are none."""
    return isinstance(option, int | float) and not isinstance(option, bool) and _is_finite(option)


def _is_finite(number: float) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an int beyond all floats
        return False


def numeric_space(
    search_space: object, algorithm: str, types: tuple[str, ...], *, priors: bool = False
) -> Space:
    """Parse a flat space of numbers; raise ValueError for nested spaces or other options.

    Args:
        search_space: in JSON.
        algorithm: name used in errors.
        types: the supported `_type`s.
        priors: whether user priors are supported.

    Raises:
        ValueError: it is malformed, of another type, nested, or an option is no finite number.
    """
    space = parse_space(search_space, algorithm=algorithm, types=types, nested=False, priors=priors)
    for parameter in space.parameters:
        if isinstance(parameter.domain, ChoiceDomain):
            for option in parameter.domain.options:
                if not is_finite_number(option):
                    raise ValueError(
                        f"search space, parameter {parameter.path!r}: options of a choice must be "
                        f"finite numbers in {algorithm}, got {option!r:.200}; use TPE for others"
                    )
    return space


def check_gp_space(search_space: object) -> None:
    """Raise ValueError for a space that GPTuner refuses."""
    numeric_space(search_space, "GPTuner", NUMERIC_TYPES, priors=True)


def check_metis_space(search_space: object) -> None:
    """Raise ValueError for a space that MetisTuner refuses."""
    numeric_space(search_space, "MetisTuner", METIS_TYPES)


def check_dngo_space(search_space: object) -> None:
    """Raise ValueError for a space that DNGOTuner refuses."""
    numeric_space(search_space, "DNGOTuner", NUMERIC_TYPES)
