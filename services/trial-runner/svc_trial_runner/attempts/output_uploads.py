"""Brings what trials have written to the byte store, where nobody else can read their folders."""

import asyncio
import shutil
import stat
from collections import deque
from pathlib import Path
from typing import Final

from svc_common.clock import Clock
from svc_common.errors import ResourceExhaustedError, ServiceError
from svc_common.logs import get_logger
from svc_trial_runner.domain.checkpoints import CHECKPOINTS
from svc_trial_runner.ports import FinishedTrial, FolderArchives, TrialBlobs, UploadSpool

ROOM_AGAIN_AFTER_S: Final = 5.0
"""Between two tries of what there was no room for: somebody has to make it."""
STREAMS: Final = ("stdout", "stderr")
FILES: Final = "files.tar"
_ARCHIVE: Final = ".files.tar"
_NOT_OUTPUT: Final = frozenset({*STREAMS, "trial.log", "code", CHECKPOINTS, _ARCHIVE})
"""What of a trial's folder is stored otherwise, or is not the trial's work."""


class OutputUploads:
    """Uploads one trial after the other; what is not done is done by the next agent.

    Trials do not wait for it. A folder is removed once it is stored.

    Args:
        bytes_: takes the files; waits while the store is away.
        archives: packs folders.
        spool: remembers what is to be done.
        clock: waits for room.
    """

    def __init__(
        self, bytes_: TrialBlobs, archives: FolderArchives, spool: UploadSpool, clock: Clock
    ) -> None:
        self._bytes = bytes_
        self._archives = archives
        self._spool = spool
        self._clock = clock
        self._queue = deque(spool.inherited())
        self._wanted = asyncio.Event()
        if self._queue:
            self._wanted.set()

    def add(self, trial: FinishedTrial) -> None:
        """Have the folder of a trial stored soon."""
        self._spool.add(trial)
        self._queue.append(trial)
        self._wanted.set()

    @property
    def waiting(self) -> int:
        """How many folders are not stored yet."""
        return len(self._queue)

    async def run(self) -> None:
        """Store whatever there is, for ever."""
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
                    self._queue.rotate(-1)  # other experiments may have room
                    await self._clock.sleep(ROOM_AGAIN_AFTER_S)
                    continue
                except (ServiceError, OSError) as error:  # trying again would not help
                    get_logger().error(
                        "output of a trial not stored", trial=trial.trial_id, error=str(error)
                    )
                self._spool.done(trial)
                self._queue.popleft()
            self._wanted.clear()

    async def _store(self, trial: FinishedTrial) -> None:
        folder = Path(trial.directory)
        if not await asyncio.to_thread(folder.is_dir):
            return
        for name in STREAMS:
            if await asyncio.to_thread(_is_own_file, folder / name):
                await self._bytes.keep_output(trial, name, folder / name)
        packed = folder / _ARCHIVE
        # What the trial has put there may be a link to anything.
        await asyncio.to_thread(packed.unlink, missing_ok=True)
        await asyncio.to_thread(self._archives.pack, folder, packed, _NOT_OUTPUT)
        await self._bytes.keep_output(trial, FILES, packed)  # the last: with it, all is there
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


def _is_own_file(path: Path) -> bool:
    """Return whether a file of a trial that is over is one, and no link to another."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False
