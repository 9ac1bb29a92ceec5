"""Back-off of restarts of child processes."""

from dataclasses import dataclass, replace
from typing import Final

HEALTHY_S: Final = 30.0
"""Run time after which a child counts as recovered, and its back-off begins anew."""
DELAYS_S: Final = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
"""Delays before successive restarts; the last one is repeated."""


@dataclass(frozen=True, slots=True)
class RestartState:
    """Count of a child's ends in a row without a run of 30 s; sets the delay of the next start."""

    ends: int = 0
    """Ends since the child was last healthy."""

    def ended(self, ran_s: float) -> "RestartState":
        """Return the state after the child ended, having run for `ran_s` seconds."""
        return replace(self, ends=1 if ran_s >= HEALTHY_S else self.ends + 1)

    @property
    def delay_s(self) -> float:
        """Delay before the next start, in seconds."""
        return DELAYS_S[min(self.ends, len(DELAYS_S)) - 1] if self.ends else 0.0
