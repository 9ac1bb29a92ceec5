"""Durations as numbers of seconds."""

import math
from datetime import timedelta


def seconds_of(name: str, duration: float | timedelta) -> float:
    """Return a duration in seconds; raise ValueError unless it is finite and positive.

    Args:
        name: of the argument, for the error.
        duration: seconds, or a timedelta.

    Raises:
        ValueError: the duration is not finite, or not positive.

    Examples:
        >>> seconds_of("duration", timedelta(minutes=2))
        120.0
    """
    seconds = duration.total_seconds() if isinstance(duration, timedelta) else float(duration)
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(
            f"{name} must be a finite number of seconds > 0 or a timedelta, got {duration!r}; "
            "leave it out if it is unknown"
        )
    return seconds
