"""Upload of trial folders to the blob store."""

import asyncio
import shutil
import stat
from collections import deque
from pathlib import Path
from typing import Final

from nni_wire.trial_blobs import OUTPUT_ARCHIVE, OUTPUT_STREAMS
from svc_common.clock import Clock
from svc_common.errors import NotFoundError, ResourceExhaustedError, ServiceError
from svc_common.logs import get_logger
from svc_trial_runner.domain.checkpoints import CHECKPOINTS, COMPLETE_CHECKPOINTS
from svc_trial_runner.domain.output import TRIAL_LOG
from svc_trial_runner.ports import FinishedTrial, FolderArchives, TrialBlobs, UploadSpool

PATIENCE_S: Final = 600.0
"""Time without a stored output after which an agent that is to end does so."""
ROOM_AGAIN_AFTER_S: Final = 5.0
"""Delay between two tries while the store is full."""
SMALL_STREAM_BYTES: Final = 64 * 1024
"""Largest size of a stream that is stored in the archive, which is one upload less."""
_ARCHIVE: Final = f".{OUTPUT_ARCHIVE}"
_NOT_OUTPUT: Final = frozenset({TRIAL_LOG, "code", CHECKPOINTS, COMPLETE_CHECKPOINTS, _ARCHIVE})
"""Entries of a trial's folder that are no output, or a second name of one."""


class OutputUploads:
    """Queue that uploads ended trials' folders to the blob store and then removes them.

    Trials do not wait for uploads. A folder is removed once it is stored, unless another attempt of
    the trial has begun in it: its end uploads what it has then, and the folder is removed after
    that.

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
        self._progress = asyncio.Event()
        """Set when an output is stored, or given up."""
        if self._queue:
            self._wanted.set()

    async def begin(self, directory: str) -> None:
        """Mark a trial's folder as in use; cancel the queued upload of an earlier attempt."""
        async with self._removing:
            self._in_use.add(directory)
        for trial in [one for one in self._queue if one.directory == directory]:
            self._queue.remove(trial)
            self._spool.done(trial)

    def end(self, directory: str) -> None:
        """Mark a trial's folder as no longer in use by an attempt, so that it may be removed."""
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

    async def wait_stored(
        self, patience_s: float = PATIENCE_S, limit_s: float | None = None
    ) -> None:
        """Wait until all outputs are stored; at a time limit log an error and return.

        Args:
            patience_s: longest time from one stored output to the next.
            limit_s: longest time in all, which is over if it is negative; None: none.
        """
        try:
            async with asyncio.timeout(limit_s):
                while self._queue:
                    self._progress.clear()
                    async with asyncio.timeout(patience_s):
                        await self._progress.wait()
        except TimeoutError:
            get_logger().error("outputs of trials not stored", trials=len(self._queue))

    async def run(self) -> None:
        """Upload queued folders one by one for ever; requeue if there is no room, drop failures."""
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
                self._progress.set()
            self._wanted.clear()

    async def _store(self, trial: FinishedTrial) -> None:
        folder = Path(trial.directory)
        if trial.directory in self._in_use:
            return
        large_streams = await asyncio.to_thread(self._pack, folder)
        if large_streams is None:
            return
        try:
            for name in (*large_streams, OUTPUT_ARCHIVE):  # the last: with it, all is there
                path = folder / (_ARCHIVE if name == OUTPUT_ARCHIVE else name)
                await self._blobs.keep_output(trial, name, path)
        except NotFoundError as error:  # the experiment was deleted, and its outputs with it
            get_logger().info("output not wanted", trial=trial.trial_id, error=error.message)
        async with self._removing:
            if trial.directory not in self._in_use and not self._is_followed(trial):
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _is_followed(self, trial: FinishedTrial) -> bool:
        """Return whether a later attempt has ended in a trial's folder and waits for its upload."""
        return any(one.directory == trial.directory and one != trial for one in self._queue)

    def _pack(self, folder: Path) -> list[str] | None:
        """Pack a folder, small streams included; return the large ones' names; None: it is gone."""
        if not folder.is_dir():
            return None
        sizes = {name: _own_size_bytes(folder / name) for name in OUTPUT_STREAMS}
        small = {
            name
            for name, size_bytes in sizes.items()
            if size_bytes is not None and size_bytes <= SMALL_STREAM_BYTES
        }
        packed = folder / _ARCHIVE
        # An entry that the trial has put there may be a link to anything.
        packed.unlink(missing_ok=True)
        self._archives.pack(folder, packed, _NOT_OUTPUT | (sizes.keys() - small))
        return [name for name, size in sizes.items() if size is not None and name not in small]


def _own_size_bytes(path: Path) -> int | None:
    """Return the size of a regular file; None: it is missing or no regular file, such as a link."""
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None
