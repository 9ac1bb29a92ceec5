"""Upload of trial folders to the blob store."""

import asyncio
import shutil
import stat
from collections import deque
from pathlib import Path
from typing import Final

from nni_wire.trial_blobs import OUTPUT_ARCHIVE, OUTPUT_STREAMS
from svc_common.clock import Clock
from svc_common.errors import ResourceExhaustedError, ServiceError
from svc_common.logs import get_logger
from svc_trial_runner.domain.checkpoints import CHECKPOINTS, COMPLETE_CHECKPOINTS
from svc_trial_runner.domain.output import TRIAL_LOG
from svc_trial_runner.ports import FinishedTrial, FolderArchives, TrialBlobs, UploadSpool

ROOM_AGAIN_AFTER_S: Final = 5.0
"""Delay between two tries while the store is full."""
_ARCHIVE: Final = f".{OUTPUT_ARCHIVE}"
_NOT_OUTPUT: Final = frozenset(
    {*OUTPUT_STREAMS, TRIAL_LOG, "code", CHECKPOINTS, COMPLETE_CHECKPOINTS, _ARCHIVE}
)
"""Entries of a trial's folder that are stored otherwise, or are not its output."""


class OutputUploads:
    """Queue that uploads ended trials' folders to the blob store and then removes them.

    Trials do not wait for uploads. A folder is removed once it is stored, unless another attempt of
    the trial has begun in it: its end uploads what it has then.

    Args:
        blobs: takes the files; waits while the store is unavailable.
        archives: packs folders.
        spool: durable queue of uploads.
        clock: times retries.
    """

    def __init__(
        self, blobs: TrialBlobs, archives: FolderArchives, spool: UploadSpool, clock: Clock
    ) -> None:
        self._blobs = blobs
        self._archives = archives
        self._spool = spool
        self._clock = clock
        self._queue = deque(spool.inherited())
        self._in_use: set[str] = set()
        """Folders of attempts that run."""
        self._removing = asyncio.Lock()
        """Held while a folder is removed: no attempt may begin in it meanwhile."""
        self._wanted = asyncio.Event()
        if self._queue:
            self._wanted.set()

    async def begin(self, directory: str) -> None:
        """Keep a trial's folder for an attempt: what an earlier one has left is not uploaded."""
        async with self._removing:
            self._in_use.add(directory)
        for trial in [one for one in self._queue if one.directory == directory]:
            self._queue.remove(trial)
            self._spool.done(trial)

    def end(self, directory: str) -> None:
        """Release a folder that was kept for an attempt."""
        self._in_use.discard(directory)

    def add(self, trial: FinishedTrial) -> None:
        """Record an ended trial in the upload spool and queue its folder for upload."""
        self._spool.add(trial)
        self._queue.append(trial)
        self._wanted.set()

    @property
    def waiting(self) -> int:
        """Number of folders that are not stored yet."""
        return len(self._queue)

    async def run(self) -> None:
        """Upload queued trial folders one by one, with pauses if the store is full; for ever."""
        while True:
            await self._wanted.wait()
            while self._queue:
                trial = self._queue[0]
                try:
                    await self._store(trial)
                except ResourceExhaustedError as error:
                    get_logger().warning(
                        "no room for the output of a trial",
                        trial=trial.trial_id,
                        error=error.message,
                    )
                    if trial in self._queue:
                        self._queue.remove(trial)
                        self._queue.append(trial)  # other experiments may have room
                    await self._clock.sleep(ROOM_AGAIN_AFTER_S)
                    continue
                except (ServiceError, OSError) as error:  # a retry would not help
                    get_logger().error(
                        "output of a trial not stored", trial=trial.trial_id, error=str(error)
                    )
                self._spool.done(trial)
                if trial in self._queue:
                    self._queue.remove(trial)
            self._wanted.clear()

    async def _store(self, trial: FinishedTrial) -> None:
        folder = Path(trial.directory)
        if trial.directory in self._in_use or not await asyncio.to_thread(folder.is_dir):
            return
        for name in OUTPUT_STREAMS:
            if await asyncio.to_thread(_is_own_file, folder / name):
                await self._blobs.keep_output(trial, name, folder / name)
        packed = folder / _ARCHIVE
        # An entry that the trial has put there may be a link to anything.
        await asyncio.to_thread(packed.unlink, missing_ok=True)
        await asyncio.to_thread(self._archives.pack, folder, packed, _NOT_OUTPUT)
        await self._blobs.keep_output(
            trial, OUTPUT_ARCHIVE, packed
        )  # the last: with it, all is there
        async with self._removing:
            if trial.directory not in self._in_use:
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _is_own_file(path: Path) -> bool:
    """Return whether a path is a regular file itself, not a link to one."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
