"""Checkpoint folders: their keys in a trial's parameters, and their default location.

A contract of algorithms with trials, which tuners, advisors and in-process searches share.
"""

import os
from pathlib import Path
from typing import Final

LOAD_KEY: Final = "load_checkpoint_dir"
"""Key of the folder that a trial starts from."""
SAVE_KEY: Final = "save_checkpoint_dir"
"""Key of the folder that a trial leaves its checkpoint in."""


def log_folder() -> Path | None:
    """Return the log folder of the experiment of this process; None outside of an experiment."""
    folder = os.environ.get("NNI_LOG_DIRECTORY", "")
    return Path(folder) if folder else None


def default_root() -> Path:
    """Return `~/nni/checkpoint/<experiment>`, `~` unexpanded; `…/standalone` outside of one.

    The experiment's id is taken from its log folder, `<root>/<experiment id>/log`; outside of an
    experiment the folder is named `standalone`.
    """
    log = log_folder()
    experiment = log.parent.name if log is not None else "standalone"
    return Path("~/nni/checkpoint") / experiment
