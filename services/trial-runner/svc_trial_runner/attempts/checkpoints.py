"""Transfer of trial checkpoints between this machine and the blob store."""

import asyncio
import shutil
from pathlib import Path
from typing import Final

from svc_common.code_user import SAME_USER, CodeUser
from svc_common.errors import NotFoundError, ServiceError
from svc_trial_runner.domain.checkpoints import CHECKPOINTS, CheckpointFolders
from svc_trial_runner.domain.claims import AttemptKey
from svc_trial_runner.domain.reports import SavedCheckpoint
from svc_trial_runner.domain.tasks import BlobKey
from svc_trial_runner.ports import FolderArchives, LaunchError, TrialBlobs, UnfitTrialError

_ARCHIVE: Final = "archive.tar"


class Checkpoints:
    """Loader and storer of checkpoint folders that trials pass on to each other.

    Args:
        blobs: blob store of the archives.
        archives: packs and unpacks folders.
        code_user: account of trials, which the folders belong to.
    """

    def __init__(
        self, blobs: TrialBlobs, archives: FolderArchives, code_user: CodeUser = SAME_USER
    ) -> None:
        self._code_user = code_user
        self._blobs = blobs
        self._archives = archives

    @property
    def trouble(self) -> str:
        """Reason why calls wait now, as text; empty: none waits."""
        return self._blobs.trouble

    async def fill(
        self,
        attempt: AttemptKey,
        folders: CheckpointFolders,
        trial_directory: str,
        archive: BlobKey | None,
    ) -> None:
        """Empty a trial's checkpoint folders, then download and unpack the one that it loads.

        Without a checkpoint the folder is not created, as on a shared file system.

        Args:
            attempt: attempt of the trial.
            folders: of the trial.
            trial_directory: folder of the trial; checkpoints of an earlier attempt in it are
                removed.
            archive: checkpoint to load; None: nothing was saved.

        Raises:
            LaunchError: the checkpoint cannot be loaded or written.
        """
        root = Path(trial_directory) / CHECKPOINTS
        try:
            await asyncio.to_thread(_make_empty, root, self._code_user)
            if archive is None or not folders.load:
                return
            packed = root / _ARCHIVE
            await self._blobs.fetch(attempt, archive, packed)
            await asyncio.to_thread(self._archives.extract, packed, Path(folders.load))
            packed.unlink()
        except NotFoundError as error:
            raise UnfitTrialError(f"the checkpoint cannot be loaded: {error}") from error
        except (OSError, ServiceError) as error:
            raise LaunchError(f"the checkpoint cannot be loaded: {error}") from error

    async def keep(self, attempt: AttemptKey, folders: CheckpointFolders) -> SavedCheckpoint | None:
        """Pack, upload, delete a trial's saved checkpoint folder; return name and blob, else None.

        Raises:
            LaunchError: the checkpoint cannot be read, or is too large for the store.
        """
        saved = Path(folders.save)
        if not folders.save or not await asyncio.to_thread(saved.is_dir):
            return None
        packed = saved.parent / _ARCHIVE
        try:
            await asyncio.to_thread(self._archives.pack, saved, packed)
            archive = await self._blobs.keep_checkpoint(attempt, packed)
            await asyncio.to_thread(_remove, saved.parent, self._code_user)
        except (OSError, ServiceError) as error:
            raise LaunchError(f"the checkpoint cannot be kept: {error}") from error
        return SavedCheckpoint(folders.save_name, archive)


def _make_empty(folder: Path, code_user: CodeUser) -> None:
    _remove(folder, code_user)
    with code_user.acting():
        folder.mkdir(parents=True)


def _remove(folder: Path, code_user: CodeUser) -> None:
    with code_user.acting():
        shutil.rmtree(folder, ignore_errors=True)
