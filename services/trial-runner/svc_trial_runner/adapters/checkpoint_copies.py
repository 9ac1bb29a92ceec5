"""Complete copies of a trial's checkpoints in its folder, beside the one being written."""

import re
import shutil
from pathlib import Path
from typing import Final

from svc_common.code_user import SAME_USER, CodeUser
from svc_trial_runner.domain.checkpoints import CHECKPOINT, COMPLETE_CHECKPOINTS
from svc_trial_runner.domain.tasks import TrialCheckpoint
from svc_trial_runner.ports import FolderArchives

_NAME: Final = re.compile(r"(\d+)\.(\d+)\.(-?\d+)")
"""Name of a complete copy: attempt, number and step. An unfinished one has another name."""
_UNFINISHED: Final = "unfinished."
_ARCHIVE: Final = "archive.tar"


class DiskCheckpointCopies:
    """Copies of a trial's checkpoint folder, each of which appears by renaming or not at all.

    A copy is a copy of the bytes: the trial may go on writing into its files.

    Args:
        archives: packs and unpacks folders.
        code_user: account of trials, which the folders belong to.
    """

    def __init__(self, archives: FolderArchives, code_user: CodeUser = SAME_USER) -> None:
        self._archives = archives
        self._code_user = code_user

    def complete(self, directory: str, checkpoint: TrialCheckpoint) -> Path:
        """Copy the trial's checkpoint folder, then remove earlier copies; return the new copy."""
        with self._code_user.acting():
            root = Path(directory) / COMPLETE_CHECKPOINTS
            root.mkdir(parents=True, exist_ok=True)
            draft = root / f"{_UNFINISHED}{_name_of(checkpoint)}"
            try:
                shutil.copytree(Path(directory) / CHECKPOINT, draft, symlinks=True)
                copy = draft.rename(root / _name_of(checkpoint))
            except BaseException:
                shutil.rmtree(draft, ignore_errors=True)
                raise
            for earlier in _complete_in(root):
                if earlier.order < checkpoint.order:
                    shutil.rmtree(root / _name_of(earlier), ignore_errors=True)
            return copy

    def last(self, directory: str) -> TrialCheckpoint | None:
        """Return the last complete checkpoint in a trial's folder; None: there is none."""
        with self._code_user.acting():
            found = _complete_in(Path(directory) / COMPLETE_CHECKPOINTS)
        return max(found, key=lambda one: one.order, default=None)

    def restore(self, directory: str, checkpoint: TrialCheckpoint | None) -> None:
        """Replace the trial's checkpoint folder by a complete copy; None: remove the folder."""
        with self._code_user.acting():
            root = Path(directory) / COMPLETE_CHECKPOINTS
            for left in root.glob(f"{_UNFINISHED}*"):
                shutil.rmtree(left, ignore_errors=True)
            folder = Path(directory) / CHECKPOINT
            if folder.is_symlink():
                folder.unlink()
            elif folder.exists():
                shutil.rmtree(folder)
            if checkpoint is not None:
                shutil.copytree(root / _name_of(checkpoint), folder, symlinks=True)

    def add(self, directory: str, checkpoint: TrialCheckpoint, archive: Path) -> None:
        """Unpack an archive to a draft folder, then rename it to a checkpoint's complete copy."""
        root = Path(directory) / COMPLETE_CHECKPOINTS
        draft = root / f"{_UNFINISHED}{_name_of(checkpoint)}"
        with self._code_user.acting():
            shutil.rmtree(draft, ignore_errors=True)  # of an agent that was killed in between
        unpack = self._archives.extract  # that of `svc_common.storage.archives`, which trusts none
        unpack(archive, draft)
        with self._code_user.acting():
            draft.rename(root / _name_of(checkpoint))

    def archive_path(self, directory: str) -> Path:
        """Return the path for a downloaded archive; create its folder."""
        with self._code_user.acting():
            root = Path(directory) / COMPLETE_CHECKPOINTS
            if root.is_symlink():  # of an earlier attempt; the agent would write where it points
                root.unlink()
            root.mkdir(parents=True, exist_ok=True)
        return root / _ARCHIVE

    def pack(self, folder: Path) -> Path:
        """Pack a copy into an archive beside it, replacing an old archive; return its path."""
        archive = folder.parent / _ARCHIVE
        with self._code_user.acting():
            archive.unlink(missing_ok=True)  # what a trial puts there may be a link to anything
        self._archives.pack(folder, archive)
        return archive

    def discard(self, directory: str) -> None:
        """Remove all copies in a trial's folder."""
        with self._code_user.acting():
            shutil.rmtree(Path(directory) / COMPLETE_CHECKPOINTS, ignore_errors=True)


def _name_of(checkpoint: TrialCheckpoint) -> str:
    return f"{checkpoint.attempt}.{checkpoint.number}.{checkpoint.step}"


def _complete_in(root: Path) -> list[TrialCheckpoint]:
    """Return the complete checkpoints in a folder, in any order."""
    found = (_NAME.fullmatch(entry.name) for entry in root.glob("*") if entry.is_dir())
    return [TrialCheckpoint(int(name[3]), int(name[1]), int(name[2])) for name in found if name]
