"""When a child that ended is started again."""

from dataclasses import dataclass, replace
from typing import Final

HEALTHY_S: Final = 30.0
"""A child that ran so long has recovered: its next end is a first one again."""
DELAYS_S: Final = (0.0, 0.1, 0.5, 1.0, 2.0, 5.0)
"""Wait before each start after an end; the last one stays."""


@dataclass(frozen=True, slots=True)
class RestartState:
    """How often a child has ended lately."""

    ends: int = 0
    """Ends since it was last healthy."""

    def ended(self, ran_s: float) -> "RestartState":
        """Give the state after the child ended, having run `ran_s` seconds."""
        return replace(self, ends=1 if ran_s >= HEALTHY_S else self.ends + 1)

    @property
    def delay_s(self) -> float:
        """Wait before the next start, in seconds."""
        return DELAYS_S[min(self.ends, len(DELAYS_S)) - 1] if self.ends else 0.0
