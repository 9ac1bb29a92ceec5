"""When to stop bringing a failing host back."""

from dataclasses import dataclass, field
from typing import Final

from svc_dispatcher.domain.values import Position

ATTEMPTS: Final = 3
"""How often one event may cost a host its life."""


@dataclass(slots=True)
class FailureLedger:
    """Counts, per event, the hosts that ended over it.

    A host that dies with nothing to do is simply brought back: no event can be blamed.
    """

    _counts: dict[Position, int] = field(default_factory=dict)

    def note(self, position: Position | None) -> int:
        """Count one more and return the count of its event.

        Args:
            position: the oldest event that the host had not handled; None if it had handled all.

        Returns:
            0 for None.
        """
        if position is None:
            return 0
        self._counts[position] = self._counts.get(position, 0) + 1
        return self._counts[position]

    @staticmethod
    def hopeless(count: int) -> bool:
        """Whether an event with this count is given up."""
        return count >= ATTEMPTS
