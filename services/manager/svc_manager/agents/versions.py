"""Whether two parts of NNI fit together, by their versions."""

from typing import Final

_COMPARED: Final = 2
"""Components of a version that tell: a patch changes nothing that is said between two parts."""


def fit(one: str, other: str) -> bool:
    """Tell whether two versions differ in their last components at most, e.g. 3.0.1 and 3.0.

    What is no version (a part that does not know its own) fits everything.
    """
    first, second = _line(one), _line(other)
    return first is None or second is None or first == second


def _line(version: str) -> tuple[str, ...] | None:
    parts = version.split(".")[:_COMPARED]
    whole = len(parts) == _COMPARED and all(part.isascii() and part.isdigit() for part in parts)
    return tuple(parts) if whole else None
