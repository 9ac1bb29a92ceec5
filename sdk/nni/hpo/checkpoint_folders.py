"""The checkpoint folders that algorithms name in the parameters of their trials."""

import os
from pathlib import Path
from typing import Final

LOAD_KEY: Final = "load_checkpoint_dir"
"""Key of the folder that a trial starts from."""
SAVE_KEY: Final = "save_checkpoint_dir"
"""Key of the folder that a trial leaves its checkpoint in."""


def log_folder() -> Path | None:
    """Return the log folder of the experiment that this process works for; None outside of one."""
    folder = os.environ.get("NNI_LOG_DIRECTORY", "")
    return Path(folder) if folder else None


def default_root() -> Path:
    """Return where checkpoints are kept if the user does not say: one folder per experiment.

    The experiment is known from its log folder, `<root>/<experiment id>/log`; outside of one the
    folder is called `standalone`.
    """
    log = log_folder()
    experiment = log.parent.name if log is not None else "standalone"
    return Path("~/nni/checkpoint") / experiment
