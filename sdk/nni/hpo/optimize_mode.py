"""Whether more of a metric is better, or less."""

from typing import Literal, TypeAlias, cast

OptimizeMode: TypeAlias = Literal["maximize", "minimize"]


def checked_optimize_mode(mode: str) -> OptimizeMode:
    """Return `mode` if it is one of the two words.

    Raises:
        ValueError: it is not.
    """
    if mode not in {"maximize", "minimize"}:
        raise ValueError(f"optimize_mode must be 'maximize' or 'minimize', got {mode!r}")
    return cast("OptimizeMode", mode)
