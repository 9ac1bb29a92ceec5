"""Time limit of planning."""

from __future__ import annotations

import time
from collections.abc import Callable

Clock = Callable[[], float]


class Deadline:
    """Instant after which planning decides nothing more: the rest of a model keeps its size.

    Args:
        limit_s: Seconds from now; None means no limit.
        clock: Function that returns the present in seconds.

    Raises:
        ValueError: `limit_s` is not above 0.

    Examples:
        >>> from nni.compression.speedup.deadline import Deadline
        >>> Deadline(60.0).passed(), Deadline(None).passed()
        (False, False)
    """

    def __init__(self, limit_s: float | None, clock: Clock = time.monotonic) -> None:
        if limit_s is not None and not limit_s > 0:
            raise ValueError(f"time_limit_s must be above 0, or None for no limit; got {limit_s}")
        self.limit_s = limit_s
        self._clock = clock
        self._end = None if limit_s is None else clock() + limit_s

    def passed(self) -> bool:
        """Return whether the time is over."""
        return self._end is not None and self._clock() > self._end

    @property
    def reason(self) -> str:
        """Return the text that planning exceeded the limit in seconds, for a report."""
        return f"planning exceeded time_limit_s={self.limit_s:g}"
