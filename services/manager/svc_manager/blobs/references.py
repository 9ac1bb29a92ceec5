"""References of event logs to blobs."""

import re
from dataclasses import dataclass, field
from typing import Final

from svc_common.messaging.ports import EventLog

_HASH: Final = re.compile(rb"@([0-9a-f]{64})")
"""Text of a SHA-256 in a field of any message: its length prefix, 64, is the character `@`."""


class References:
    """Scanner that finds the blob hashes named in experiments' logs, each batch read once.

    It finds the text of hashes, not known fields: references of older and newer versions are found,
    too, and a text that only looks like a hash is harmless. Each batch is read once: logs only
    grow.

    Args:
        events: the logs.
    """

    def __init__(self, events: EventLog) -> None:
        self._events = events
        self._known: dict[str, _Read] = {}

    async def of(self, experiment_id: str) -> frozenset[str]:
        """Read the unread part of an experiment's log; return all hashes found in it so far."""
        read = self._known.setdefault(experiment_id, _Read())
        async for message in self._events.read(experiment_id, read.sequence):
            read.hashes.update(hashes_in(message.payload))
            read.sequence = max(read.sequence, message.sequence)
        return frozenset(read.hashes)

    async def experiments(self) -> list[str]:
        """Return the ids of all experiments with a log; drop cached hashes of deleted ones."""
        found = await self._events.experiments()
        for deleted in self._known.keys() - set(found):
            del self._known[deleted]
        return found


@dataclass(slots=True)
class _Read:
    """Cache of one log's scan: the hashes found, and the sequence up to which it was read."""

    sequence: int = 0
    """Stream sequence of the last scanned message."""
    hashes: set[str] = field(default_factory=set)


def hashes_in(payload: bytes) -> set[str]:
    """Return the 64-digit hexadecimal texts in an encoded message, which may be hashes of blobs."""
    return {found.decode() for found in _HASH.findall(payload)}
