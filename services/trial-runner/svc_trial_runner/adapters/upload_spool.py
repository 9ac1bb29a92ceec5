"""Durable queue of uploads: one small file for each trial."""

import json
from pathlib import Path
from typing import Final

from svc_common.logs import get_logger
from svc_trial_runner.ports import FinishedTrial

_SUFFIX: Final = ".json"


class DirectoryUploadSpool:
    """`ports.UploadSpool` in a folder.

    Args:
        folder: created if missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def inherited(self) -> list[FinishedTrial]:
        """See `ports.UploadSpool.inherited`."""
        found = []
        for path in self._folder.glob(f"*{_SUFFIX}"):
            try:
                entry = json.loads(path.read_text("utf-8"))
                trial = FinishedTrial(
                    entry["experiment"], entry["trial"], entry["attempt"], entry["directory"]
                )
                found.append((path.stat().st_mtime_ns, trial))
            except (OSError, ValueError, KeyError, TypeError):  # cut by a crash
                path.unlink(missing_ok=True)
        return [trial for _, trial in sorted(found, key=lambda item: item[0])]

    def add(self, trial: FinishedTrial) -> None:
        """See `ports.UploadSpool.add`."""
        entry = {
            "experiment": trial.experiment_id,
            "trial": trial.trial_id,
            "attempt": trial.attempt,
            "directory": trial.directory,
        }
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._place(trial).write_text(json.dumps(entry), "utf-8")
        except OSError as error:
            get_logger().warning("upload not remembered", trial=trial.trial_id, error=str(error))

    def done(self, trial: FinishedTrial) -> None:
        """See `ports.UploadSpool.done`."""
        try:
            self._place(trial).unlink(missing_ok=True)
        except OSError as error:
            get_logger().warning("upload not forgotten", trial=trial.trial_id, error=str(error))

    def _place(self, trial: FinishedTrial) -> Path:
        return self._folder / f"{trial.experiment_id}-{trial.trial_id}-{trial.attempt}{_SUFFIX}"
