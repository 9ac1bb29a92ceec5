"""Durable queue of uploads: one small file for each trial."""

import json
from pathlib import Path
from typing import Any, Final

from svc_common.errors import InvalidArgumentError
from svc_common.logs import get_logger
from svc_common.own_files import private_folder, set_aside
from svc_common.storage.atomic_files import atomic_file
from svc_common.subjects import check_id
from svc_trial_runner.ports import FinishedTrial

_SUFFIX: Final = ".json"


class DirectoryUploadSpool:
    """Folder of JSON files that name finished trials still to be uploaded.

    Args:
        folder: created if missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def inherited(self) -> list[FinishedTrial]:
        """Return uploads that the previous process left, oldest first; rename damaged entries."""
        found = []
        for path in self._folder.glob(f"*{_SUFFIX}"):
            try:
                trial = _parsed(json.loads(path.read_bytes()))
                found.append((path.stat().st_mtime_ns, trial))
            except (
                *(OSError, ValueError, KeyError, TypeError, RecursionError),
                InvalidArgumentError,
            ) as error:
                set_aside(path, f"it names no finished trial ({error}); its outputs stay here")
        return [trial for _, trial in sorted(found, key=lambda item: item[0])]

    def add(self, trial: FinishedTrial) -> None:
        """Write a finished trial's entry to the upload spool; an error is only logged.

        It is not synced to the disk, since the folder that it names is not either: the agent's loop
        would wait for the disk at the end of each trial.
        """
        entry = {
            "experiment": trial.experiment_id,
            "trial": trial.trial_id,
            "attempt": trial.attempt,
            "directory": trial.directory,
        }
        try:
            private_folder(self._folder)
            with atomic_file(self._place(trial), synced=False) as file:
                file.write(json.dumps(entry).encode())
        except OSError as error:
            get_logger().warning("upload not remembered", trial=trial.trial_id, error=str(error))

    def done(self, trial: FinishedTrial) -> None:
        """Delete an uploaded trial's entry from the spool; an error is only logged."""
        try:
            self._place(trial).unlink(missing_ok=True)
        except OSError as error:
            get_logger().warning("upload not forgotten", trial=trial.trial_id, error=str(error))

    def _place(self, trial: FinishedTrial) -> Path:
        return self._folder / f"{trial.experiment_id}-{trial.trial_id}-{trial.attempt}{_SUFFIX}"


def _parsed(entry: Any) -> FinishedTrial:  # noqa: ANN401 - any JSON value
    """Parse a spool entry to a finished trial; raise if a field is missing or invalid.

    Raises:
        KeyError: a field is missing.
        TypeError: the entry or a field has the wrong type.
        InvalidArgumentError: an id has a character that ids cannot have.
    """
    attempt, directory = entry["attempt"], entry["directory"]
    if type(attempt) is not int or not isinstance(directory, str):
        raise TypeError("attempt must be a number, and directory a text")
    experiment_id = check_id("experiment", entry["experiment"])
    return FinishedTrial(experiment_id, check_id("trial", entry["trial"]), attempt, directory)
