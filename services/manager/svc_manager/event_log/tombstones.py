"""What is left of a deletion: by which request which experiment was deleted, for a while.

Nothing else knows it once the log is gone, and whoever did not get the answer asks again, perhaps
another manager, perhaps after a restart.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from svc_common.errors import NotFoundError
from svc_common.storage.ports import BlobStore
from svc_manager.domain.garbage import TOMBSTONE_KIND

_DIGITS: Final = 32
"""Of the hash of a request id: ids come from outside and may hold what no key may."""


@dataclass(frozen=True, slots=True)
class Tombstone:
    """One deletion that was begun; it may not have come to its end."""

    experiment_id: str
    last_sequence: int
    """Where the log that was deleted ended. One that ends elsewhere is another experiment, which
    has been given the same id since."""


class Tombstones:
    """Keeps deletions in the byte store, which all managers share.

    Args:
        blobs: the store; it collects them as garbage when nobody asks again.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def put(self, request_id: str, tombstone: Tombstone) -> None:
        """Note a deletion that begins."""
        facts = {
            "experiment": tombstone.experiment_id,
            "last_sequence": tombstone.last_sequence,
        }
        await self._blobs.put_named(_key(request_id), json.dumps(facts).encode())

    async def get(self, request_id: str) -> Tombstone | None:
        """Give what a request has deleted, or begun to; None: nothing that is known."""
        try:
            facts = json.loads(await self._blobs.get(_key(request_id)))
        except NotFoundError:
            return None
        return Tombstone(str(facts["experiment"]), int(facts["last_sequence"]))


def _key(request_id: str) -> str:
    digest = hashlib.sha256(request_id.encode("utf-8", "surrogateescape")).hexdigest()
    return f"{TOMBSTONE_KIND}/{digest[:_DIGITS]}"
