"""What the logs of experiments name in the byte store."""

import re
from dataclasses import dataclass, field
from typing import Final

from svc_common.messaging.ports import EventLog

_HASH: Final = re.compile(rb"@([0-9a-f]{64})")
"""Text of a SHA-256 in a field of any message: its length, 64, which is `@`, stands before it."""


class References:
    """Reads logs for the hashes in them.

    It looks for the text of hashes, not for known fields: what an older or a newer version of the
    log names is found, too, and a text that only looks like a hash does no harm.

    What was read once is not read again: logs only grow.

    Args:
        events: the logs.
    """

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._known: dict[str, _Read] = {}

    async def of(self, experiment_id: str) -> frozenset[str]:
        """Give all hashes that the log of an experiment has."""
        read = self._known.setdefault(experiment_id, _Read())
        async for message in self._events.read(experiment_id, read.sequence):
            read.hashes.update(hashes_in(message.payload))
            read.sequence = max(read.sequence, message.sequence)
        return frozenset(read.hashes)

    async def experiments(self) -> list[str]:
        """Give the ids of all experiments that have a log."""
        found = await self._events.experiments()
        for gone in self._known.keys() - set(found):
            del self._known[gone]
        return found


@dataclass(slots=True)
class _Read:
    """What is known of one log."""

    sequence: int = 0
    """Stream sequence of the last message that was read."""
    hashes: set[str] = field(default_factory=set)


def hashes_in(payload: bytes) -> set[str]:
    """Give what in a message may be a hash."""
    return {found.decode() for found in _HASH.findall(payload)}
