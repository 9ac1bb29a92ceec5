"""Use case that gives back the disk of deleted experiments in the background."""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from svc_common.errors import NotFoundError, ServiceError
from svc_common.logs import get_logger
from svc_common.storage.ports import BlobStore
from svc_manager.ports import Folders

_KIND: Final = "disposal"
"""First key part of the records; the garbage collector leaves them alone."""


@dataclass(frozen=True, slots=True)
class Disposal:
    """Renamed folder of an experiment whose deletion has begun."""

    experiment_id: str
    directory: Path
    """New path of the folder."""
    last_sequence: int
    """Last sequence of the experiment's log; a log that ends elsewhere is of another experiment."""


class FolderDisposal:
    """Queue of the renamed folders of deleted experiments, and the removal of their contents.

    A deletion renames the folder and is over in milliseconds; `run` deletes what is in it. Records
    in the byte store let the next manager of this machine go on after a kill.

    Args:
        folders: renames and deletes.
        blobs: keeps the records.
        machine: name of this machine, whose folders these are.
    """

    def __init__(self, folders: Folders, blobs: BlobStore, machine: str) -> None:
        self._folders = folders
        self._blobs = blobs
        self._prefix = f"{_KIND}/{hashlib.sha256(machine.encode()).hexdigest()[:16]}/"
        self._queue: asyncio.Queue[Disposal] = asyncio.Queue()
        self._remaining: dict[str, int] = {}

    def remaining(self, experiment_id: str) -> int:
        """Return how many trial folders of a deleted experiment are still on the disk, about."""
        return self._remaining.get(experiment_id, 0)

    async def take(self, experiment_id: str, directory: Path, last_sequence: int) -> bool:
        """Rename an experiment's folder and queue it for deletion; False: it holds no log of it.

        Returns:
            False if the folder holds no log of this experiment, and is left alone.
        """
        new = directory.with_name(f".deleted-{experiment_id}-{secrets.token_hex(4)}")
        disposal = Disposal(experiment_id, new, last_sequence)
        record = {
            "experiment": experiment_id,
            "old": str(directory),
            "directory": str(new),
            "last_sequence": last_sequence,
        }
        # Before the folder is renamed: a record without a folder does no harm.
        await self._blobs.put_named(self._key(disposal), json.dumps(record).encode())
        taken = await self._folders.rename_of(directory, experiment_id, new)
        if taken:
            self._remaining[experiment_id] = 1
            self._queue.put_nowait(disposal)
        return taken

    async def resume(
        self,
        is_unfinished: Callable[[Disposal], Awaitable[bool]],
        complete: Callable[[Disposal], Awaitable[None]],
    ) -> None:
        """Queue the folders that earlier managers have left, and complete their deletions.

        Args:
            is_unfinished: returns whether the experiment's log is still there.
            complete: deletes the log and all else of an experiment whose folder is renamed.
        """
        for info in await self._blobs.listing(self._prefix):
            try:
                record = json.loads(await self._blobs.get(info.key))
                old, directory = Path(record["old"]), Path(record["directory"])
                disposal = Disposal(record["experiment"], directory, int(record["last_sequence"]))
            except (NotFoundError, ValueError, KeyError, TypeError) as error:
                get_logger().warning("record of a deletion dropped", key=info.key, error=str(error))
                await self._blobs.delete(info.key)
                continue
            if await is_unfinished(disposal):
                await self._folders.rename_of(old, disposal.experiment_id, directory)
                await complete(disposal)
            self._remaining.setdefault(disposal.experiment_id, 1)
            self._queue.put_nowait(disposal)

    async def run(self) -> None:
        """Delete the queued folders, one after the other, until cancelled."""
        while True:
            disposal = await self._queue.get()
            await self._dispose(disposal)

    async def _dispose(self, disposal: Disposal) -> None:
        def note(remaining: int) -> None:
            self._remaining[disposal.experiment_id] = remaining + 1

        await self._folders.dispose(disposal.directory, note)
        self._remaining.pop(disposal.experiment_id, None)
        with suppress(ServiceError):  # the next start finds no folder, and drops the record
            await self._blobs.delete(self._key(disposal))
        get_logger().info("disk of an experiment given back", experiment=disposal.experiment_id)

    def _key(self, disposal: Disposal) -> str:
        digest = hashlib.sha256(str(disposal.directory).encode()).hexdigest()
        return f"{self._prefix}{digest[:32]}"
