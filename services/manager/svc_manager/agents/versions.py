"""Compatibility of two NNI components by their versions."""

from typing import Final

_COMPARED: Final = 2
"""Leading components of a version that decide: a patch release changes no contract."""


def fit(one: str, other: str) -> bool:
    """Return whether major and minor number are equal; a text that is no version fits all.

    A text that is not a version (of a part that does not know its own) is compatible with all.
    """
    first, second = _line(one), _line(other)
    return first is None or second is None or first == second


def _line(version: str) -> tuple[str, ...] | None:
    parts = version.split(".")[:_COMPARED]
    whole = len(parts) == _COMPARED and all(part.isascii() and part.isdigit() for part in parts)
    return tuple(parts) if whole else None
