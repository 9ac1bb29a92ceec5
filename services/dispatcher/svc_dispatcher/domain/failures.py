"""Limit on restarts of a failing host."""

from dataclasses import dataclass
from typing import Final

from svc_dispatcher.domain.values import Position

ATTEMPTS: Final = 3
"""Number of hosts in a row that may end over one event."""


@dataclass(slots=True)
class FailureLedger:
    """Counter of hosts that ended in a row at the same event, to detect a fatal event.

    The end of an idle host is not counted: no event can have caused it. An event that a later host
    has handled is cleared: the earlier ends had another cause.
    """

    _blamed: Position | None = None
    _count: int = 0

    def record_failure(self, position: Position | None) -> int:
        """Count a host that ended at its oldest unhandled event; return the count, 0 without one.

        Args:
            position: oldest event that the host had not handled; None if it had handled all.

        Returns:
            0 for None.
        """
        if position is None:
            return 0
        if position != self._blamed:
            self._blamed, self._count = position, 0
        self._count += 1
        return self._count

    def handled(self, position: Position) -> None:
        """Clear the count if its event is at or before a position that a host has handled."""
        if self._blamed is not None and self._blamed <= position:
            self._blamed, self._count = None, 0

    @staticmethod
    def is_exhausted(count: int) -> bool:
        """Return whether a count of failures in a row has reached the limit, 3."""
        return count >= ATTEMPTS
