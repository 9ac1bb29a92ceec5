"""Tombstones of deleted experiments: which request deleted which experiment, for a while.

The log with its requests is gone after a deletion; a client that got no answer repeats the request,
perhaps to another manager, perhaps after a restart.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from svc_common.errors import NotFoundError
from svc_common.storage.ports import BlobStore
from svc_manager.domain.garbage import TOMBSTONE_KIND

_DIGITS: Final = 32
"""Of the hash of a request id: ids come from clients and may hold characters that keys may not."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """Record of a started deletion: the experiment and the last sequence of its log."""

    experiment_id: str
    last_sequence: int
    """Last sequence of the deleted log. A log that ends elsewhere is of another experiment, which
    got the same id later."""


class Tombstones:
    """Store of deletion records by request id, shared by all managers, in the byte store.

    Args:
        blobs: the store; its garbage collector deletes old tombstones.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def put(self, request_id: str, tombstone: Tombstone) -> None:
        """Store that a request starts to delete this experiment, before anything is deleted."""
        facts = {
            "experiment": tombstone.experiment_id,
            "last_sequence": tombstone.last_sequence,
        }
        await self._blobs.put_named(_key(request_id), json.dumps(facts).encode())

    async def get(self, request_id: str) -> Tombstone | None:
        """Return the record of the deletion that a request started; None: it started none."""
        try:
            facts = json.loads(await self._blobs.get(_key(request_id)))
        except NotFoundError:
            return None
        return Tombstone(str(facts["experiment"]), int(facts["last_sequence"]))


def _key(request_id: str) -> str:
    digest = hashlib.sha256(request_id.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{TOMBSTONE_KIND}/{digest[:_DIGITS]}"
