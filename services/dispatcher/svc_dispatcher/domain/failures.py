"""When to stop bringing a failing host back."""

from dataclasses import dataclass
from typing import Final

from svc_dispatcher.domain.values import Position

ATTEMPTS: Final = 3
"""How many hosts in a row one event may cost their lives."""


@dataclass(slots=True)
class FailureLedger:
    """Counts the hosts in a row that ended over the same event.

    A host that dies with nothing to do is simply brought back: no event can be blamed. An event
    that a later host has handled is acquitted: what killed the earlier ones came from elsewhere.
    """

    _blamed: Position | None = None
    _count: int = 0

    def note(self, position: Position | None) -> int:
        """Count one more and return the count of its event.

        Args:
            position: the oldest event that the host had not handled; None if it had handled all.

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
        """Learn that a host has handled all events up to this one."""
        if self._blamed is not None and self._blamed <= position:
            self._blamed, self._count = None, 0

    @staticmethod
    def hopeless(count: int) -> bool:
        """Whether an event with this count is given up."""
        return count >= ATTEMPTS
