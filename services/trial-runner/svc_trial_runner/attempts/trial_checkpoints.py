"""Checkpoints of a trial for its own next attempt: copies in its folder, uploads, restoration.

The trial writes one folder. Each time it says that this is complete, the agent makes a copy, from
which a later attempt on this machine goes on. Where the folder of the trial is not shared, the copy
is uploaded in the background: one upload at a time, and of the copies that wait the newest one.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from svc_common.errors import NotFoundError, ServiceError
from svc_common.logs import get_logger
from svc_trial_runner.domain.reports import CheckpointSaved
from svc_trial_runner.domain.tasks import TrialCheckpoint, TrialWork
from svc_trial_runner.ports import CheckpointCopies, LaunchError, TrialBlobs

UPLOAD_GRACE_S: Final = 30.0
"""Time for which the end of a lost or failed attempt waits for its last upload, in seconds."""


class TrialCheckpoints:
    """Factory of `AttemptCheckpoints` that share the folder copies, blob store and time limit.

    Args:
        copies: copies folders.
        blobs: store of the archives.
        upload_grace_s: time for which the end of an attempt waits for the last upload, in seconds.
    """

    def __init__(
        self, copies: CheckpointCopies, blobs: TrialBlobs, upload_grace_s: float = UPLOAD_GRACE_S
    ) -> None:
        self._copies = copies
        self._blobs = blobs
        self._upload_grace_s = upload_grace_s

    def of_attempt(
        self, work: TrialWork, directory: str, report: Callable[[CheckpointSaved], bool]
    ) -> "AttemptCheckpoints":
        """Return a new `AttemptCheckpoints` for a task; nothing is read or written yet.

        Args:
            work: the task of the attempt.
            directory: folder of the trial.
            report: sends a stored checkpoint to the manager.
        """
        return AttemptCheckpoints(
            work, directory, report, self._copies, self._blobs, self._upload_grace_s
        )


class AttemptCheckpoints:
    """Checkpoints of one attempt: restored before its start, copied and uploaded while it runs.

    Args:
        work: the task of the attempt.
        directory: folder of the trial.
        report: sends a stored checkpoint to the manager.
        copies: copies folders.
        blobs: store of the archives.
        upload_grace_s: time for which the end of the attempt waits for the last upload.
    """

    def __init__(
        self,
        work: TrialWork,
        directory: str,
        report: Callable[[CheckpointSaved], bool],
        copies: CheckpointCopies,
        blobs: TrialBlobs,
        upload_grace_s: float,
    ) -> None:
        self._work = work
        self._directory = directory
        self._report = report
        self._copies = copies
        self._blobs = blobs
        self._upload_grace_s = upload_grace_s
        self._travels = work.spec.outputs_travel
        self._number = 0
        self._step = 0
        """The last step."""
        self._copying = asyncio.Lock()
        """Held while a copy is made or packed: a newer copy removes the earlier ones."""
        self._waiting: tuple[TrialCheckpoint, Path] | None = None
        """Newest copy, if it is to be uploaded."""
        self._uploading: asyncio.Task[None] | None = None
        self._over = False

    async def restore(self) -> None:
        """Restore the trial's folder from the newest local or stored checkpoint; remove it if none.

        Without one, or if the store has lost it, the folder is removed, with what an earlier
        attempt has half written.

        Raises:
            LaunchError: a folder cannot be read or written.
        """
        try:
            found = await asyncio.to_thread(self._copies.last, self._directory)
            stored = self._work.resume_from
            if stored is not None and (found is None or found.order < stored.order):
                found = await self._fetch(stored) or found
            await asyncio.to_thread(self._copies.restore, self._directory, found)
        except OSError as error:
            raise LaunchError(f"the last checkpoint cannot be restored: {error}") from error
        if found is not None:
            self._step = found.step

    async def _fetch(self, stored: TrialCheckpoint) -> TrialCheckpoint | None:
        """Download a stored checkpoint as a complete copy; log, return None if the store fails."""
        assert stored.archive is not None, "the manager names no other"
        try:
            archive = await asyncio.to_thread(self._copies.archive_path, self._directory)
            await self._blobs.fetch(self._work.key, stored.archive, archive)
            await asyncio.to_thread(self._copies.add, self._directory, stored, archive)
            await asyncio.to_thread(archive.unlink, missing_ok=True)
        except (NotFoundError, ServiceError) as error:
            get_logger().error(
                "checkpoint of a trial is lost",
                trial=self._work.key.trial_id,
                step=stored.step,
                error=error.message,
            )
            return None
        return stored

    async def save(self, step: int | None) -> int:
        """Copy the checkpoint folder, report it or start its upload; return the step.

        Args:
            step: as the trial names it; None: one more than the last.

        Returns:
            The step.

        Raises:
            OSError: the copy cannot be written, as on a full disk; the earlier one stays.
        """
        async with self._copying:
            step = self._step + 1 if step is None else step
            checkpoint = TrialCheckpoint(step, self._work.key.attempt, self._number + 1)
            copy = await asyncio.to_thread(self._copies.complete, self._directory, checkpoint)
            self._number, self._step = checkpoint.number, step
        if self._travels and not self._over:
            self._waiting = (checkpoint, copy)
            if self._uploading is None:
                self._uploading = asyncio.create_task(self._upload_all(), name="upload checkpoints")
        elif not self._travels:
            self._report(CheckpointSaved(checkpoint))
        return step

    async def _upload_all(self) -> None:
        """Upload the newest copy, and again while a newer one has come meanwhile."""
        try:
            while self._waiting is not None:
                await self._upload()
        finally:
            self._uploading = None

    async def _upload(self) -> None:
        try:
            async with self._copying:
                assert self._waiting is not None
                (checkpoint, copy), self._waiting = self._waiting, None
                archive = await asyncio.to_thread(self._copies.pack, copy)
            key = await self._blobs.keep_checkpoint(self._work.key, archive)
        except (OSError, ServiceError) as error:
            get_logger().warning(
                "checkpoint not stored", trial=self._work.key.trial_id, error=str(error)
            )
            return
        stored = TrialCheckpoint(checkpoint.step, checkpoint.attempt, checkpoint.number, key)
        self._report(CheckpointSaved(stored))

    async def finish(self, *, wanted: bool) -> None:
        """Wait for the last upload, for a while, if a next attempt may want it; else remove copies.

        Args:
            wanted: whether another attempt may follow.
        """
        if wanted:
            if self._uploading is not None:
                await asyncio.wait({self._uploading}, timeout=self._upload_grace_s)
        else:
            self.cancel()
            if self._number or self._work.key.attempt > 1:
                await asyncio.to_thread(self._copies.discard, self._directory)

    def cancel(self) -> None:
        """Cancel the upload; later copies are not uploaded."""
        self._over = True
        self._waiting = None
        if self._uploading is not None:
            self._uploading.cancel()
