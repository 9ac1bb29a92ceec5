"""Checkpoints of trials between this machine and the byte store."""

import asyncio
import shutil
from pathlib import Path
from typing import Final

from svc_common.errors import ServiceError
from svc_trial_runner.domain.checkpoints import CHECKPOINTS, CheckpointFolders
from svc_trial_runner.domain.reports import SavedCheckpoint
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import FolderArchives, LaunchError, TrialBlobs

_ARCHIVE: Final = "archive.tar"


class Checkpoints:
    """Fills folders before trials start and keeps what they have saved.

    Args:
        bytes_: where archives lie.
        archives: packs and unpacks folders.
    """

    def __init__(self, bytes_: TrialBlobs, archives: FolderArchives) -> None:
        self._bytes = bytes_
        self._archives = archives

    @property
    def trouble(self) -> str:
        """What calls wait for now, in words; empty: for nothing."""
        return self._bytes.trouble

    async def fill(
        self, folders: CheckpointFolders, trial_directory: str, archive: BlobKey | None
    ) -> None:
        """Make what a trial loads; waits while the store is away.

        A folder without a checkpoint is not made, as it would not be where folders are shared.

        Args:
            folders: of the trial.
            trial_directory: the trial's own folder; what an earlier attempt left of checkpoints
                in it is removed.
            archive: what is loaded; None: nothing was saved.

        Raises:
            LaunchError: it cannot be had, or not be written.
        """
        root = Path(trial_directory) / CHECKPOINTS
        try:
            await asyncio.to_thread(_make_empty, root)
            if archive is None or not folders.load:
                return
            packed = root / _ARCHIVE
            await self._bytes.fetch(archive, packed)
            await asyncio.to_thread(self._archives.extract, packed, Path(folders.load))
            packed.unlink()
        except (OSError, ServiceError) as error:
            raise LaunchError(f"the checkpoint cannot be loaded: {error}") from error

    async def keep(self, experiment_id: str, folders: CheckpointFolders) -> SavedCheckpoint | None:
        """Store what a trial has saved; None: it has saved nothing. Waits as `fill` does.

        Raises:
            LaunchError: it cannot be read, or is larger than the store takes.
        """
        saved = Path(folders.save)
        if not folders.save or not await asyncio.to_thread(saved.is_dir):
            return None
        packed = saved.parent / _ARCHIVE
        try:
            await asyncio.to_thread(self._archives.pack, saved, packed)
            archive = await self._bytes.keep_checkpoint(experiment_id, packed)
            await asyncio.to_thread(shutil.rmtree, saved.parent, ignore_errors=True)
        except (OSError, ServiceError) as error:
            raise LaunchError(f"the checkpoint cannot be kept: {error}") from error
        return SavedCheckpoint(folders.save_name, archive)


def _make_empty(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
