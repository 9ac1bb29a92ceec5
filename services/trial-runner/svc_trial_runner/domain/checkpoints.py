"""Checkpoint folders of a trial on this machine, in place of those that its algorithm named."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

LOAD_KEY: Final = "load_checkpoint_dir"
SAVE_KEY: Final = "save_checkpoint_dir"
CHECKPOINTS: Final = "checkpoints"
"""Folder of a trial that holds them."""
_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class CheckpointFolders:
    """Where a trial loads from and saves to."""

    parameters: Mapping[str, Any]
    """Those of the trial, with folders of this machine."""
    load: str
    """Folder of this machine; empty: it loads nothing."""
    save: str
    """Folder of this machine; empty: it saves nothing."""
    save_name: str
    """What the algorithm calls the folder that is saved."""


def checkpoint_folders(parameters: object, trial_directory: str) -> CheckpointFolders | None:
    """Give the folders of a trial; None: its parameters name none.

    Equal names give equal folders: a trial may load from where it saves.

    Args:
        parameters: as the algorithm made them.
        trial_directory: the trial's own folder on this machine.
    """
    if not isinstance(parameters, Mapping):
        return None
    load, save = (_name(parameters.get(key)) for key in (LOAD_KEY, SAVE_KEY))
    if not load and not save:
        return None
    root = PurePosixPath(trial_directory) / CHECKPOINTS
    here = {name: str(root / _digest(name)) for name in (load, save) if name}
    changed = dict(parameters)
    if load:
        changed[LOAD_KEY] = here[load]
    if save:
        changed[SAVE_KEY] = here[save]
    return CheckpointFolders(changed, here.get(load, ""), here.get(save, ""), save)


def _name(value: object) -> str:
    return value if isinstance(value, str) else ""


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:_DIGITS]
