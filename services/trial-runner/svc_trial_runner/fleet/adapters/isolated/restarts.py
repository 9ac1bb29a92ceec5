"""Back-off of the restarts of a child process."""

from dataclasses import dataclass
from typing import Final

FIRST_S: Final = 1.0
"""Delay after the second end in a row; after the first one there is none."""
LONGEST_S: Final = 60.0
SETTLED_S: Final = 60.0
"""A process that has run for so long is no failed start."""


@dataclass(frozen=True, slots=True)
class RestartBackoff:
    """Number of ends in a row, and the instant from which the next start is allowed."""

    ends: int = 0
    allowed_from_s: float = 0.0

    def after_end(self, started_s: float, ended_s: float) -> "RestartBackoff":
        """Return the next back-off: none at first end, then 1 s doubling to 60; a long run resets.

        Args:
            started_s: instant of its start, of a monotonic clock.
            ended_s: instant at which its end was noticed.
        """
        ends = 1 if ended_s - started_s >= SETTLED_S else self.ends + 1
        delay_s = 0.0 if ends == 1 else min(LONGEST_S, FIRST_S * 2.0 ** min(ends - 2, 16))
        return RestartBackoff(ends, ended_s + delay_s)

    def delay_s(self, now_s: float) -> float:
        """Return the seconds until the next start is allowed; 0 if it is allowed now."""
        return max(0.0, self.allowed_from_s - now_s)
