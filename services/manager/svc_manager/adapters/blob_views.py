"""`Views` in the byte store, for installations without Redis."""

import asyncio
from collections.abc import Collection

from svc_common.errors import NotFoundError
from svc_common.storage.ports import BlobStore
from svc_manager.domain.garbage import SUMMARY_KIND

_SEQUENCE_BYTES = 8


class BlobViews:
    """Adapter that stores experiments' `Views` as named blobs in the byte store.

    Args:
        blobs: the byte store.
    """

    def __init__(self, blobs: BlobStore) -> None:
        self._blobs = blobs

    async def put(self, experiment_id: str, sequence: int, view: bytes) -> None:
        """Store an experiment's view with its log sequence as a blob, replacing the last one."""
        data = sequence.to_bytes(_SEQUENCE_BYTES, "big") + view
        await self._blobs.put_named(_key(experiment_id), data)

    async def get(self, experiment_ids: Collection[str]) -> dict[str, tuple[int, bytes]]:
        """Return {experiment id: (log sequence, view)} of the experiments that have a view."""
        wanted = list(experiment_ids)
        answers = await asyncio.gather(*map(self._read, wanted), return_exceptions=True)
        found: dict[str, tuple[int, bytes]] = {}
        for experiment_id, answer in zip(wanted, answers, strict=True):
            if isinstance(answer, BaseException):
                raise answer
            if answer is not None:
                found[experiment_id] = answer
        return found

    async def _read(self, experiment_id: str) -> tuple[int, bytes] | None:
        try:
            data = await self._blobs.get(_key(experiment_id))
        except NotFoundError:
            return None
        return int.from_bytes(data[:_SEQUENCE_BYTES], "big"), data[_SEQUENCE_BYTES:]

    async def delete(self, experiment_id: str) -> None:
        """Delete a view; do nothing if there is none."""
        await self._blobs.delete(_key(experiment_id))


def _key(experiment_id: str) -> str:
    return f"{SUMMARY_KIND}/{experiment_id}/experiment"
