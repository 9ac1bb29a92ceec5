"""Checkpoints of a script that runs without an experiment: a folder in the working directory.

The folder that the script writes has a hidden one beside it, with a copy of each complete
checkpoint that replaces the one before by renaming: a script that is killed at any moment finds the
last one when it is started again.
"""

import re
import shutil
import sys
from pathlib import Path

from nni.trial import settings

FOLDER = "nni-checkpoint"
"""Folder in the working directory."""
COMPLETE = ".nni-checkpoint"
"""Folder beside it with the complete copy."""
_NAME = re.compile(r"(\d+)\.(-?\d+)")
"""Name of a complete copy: number and step."""
_UNFINISHED = "unfinished"
_restored: "set[Path]" = set()
"""Folders that this process has restored."""


def open_folder() -> Path:
    """Return the checkpoint folder; restore the last checkpoint at the first call of a run.

    Processes that another one of the same run has started leave the content as it is.
    """
    folder = Path.cwd() / FOLDER
    if folder not in _restored:
        _restored.add(folder)
        if _begins_the_run():
            _restore(folder)
    folder.mkdir(exist_ok=True)
    return folder


def complete(step: int | None) -> str:
    """Replace the last complete checkpoint by a copy of the folder; return an error or empty text.

    Args:
        step: of the checkpoint; None: one more than the last.
    """
    root = Path.cwd() / COMPLETE
    number, last_step = _last(root) or (0, 0)
    step = last_step + 1 if step is None else step
    draft = root / _UNFINISHED
    try:
        shutil.rmtree(draft, ignore_errors=True)
        root.mkdir(exist_ok=True)
        shutil.copytree(open_folder(), draft, symlinks=True)
        kept = draft.rename(root / f"{number + 1}.{step}")
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        return f"the checkpoint is not saved: {error}"
    for entry in root.iterdir():
        if entry != kept:
            shutil.rmtree(entry, ignore_errors=True)
    return ""


def _begins_the_run() -> bool:
    """Return whether this is the main process of rank zero, which may restore the folder."""
    process = sys.modules.get("multiprocessing.process")
    child = process is not None and process.parent_process() is not None
    return not child and settings.is_first_rank()


def _restore(folder: Path) -> None:
    root = folder.parent / COMPLETE
    found = _last(root)
    if folder.exists():
        shutil.rmtree(folder)
    if found is not None:
        shutil.copytree(root / f"{found[0]}.{found[1]}", folder, symlinks=True)


def _last(root: Path) -> "tuple[int, int] | None":
    """Return number and step of the last complete copy; None: there is none."""
    if not root.is_dir():
        return None
    names = [_NAME.fullmatch(entry.name) for entry in root.iterdir()]
    return max(((int(name[1]), int(name[2])) for name in names if name), default=None)
