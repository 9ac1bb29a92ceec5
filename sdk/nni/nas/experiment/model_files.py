"""Files that the trials of an exploration have left of their models."""

from __future__ import annotations

import shutil
from pathlib import Path, PurePosixPath

from nni.experiment.archive_files import unpack_files
from nni.experiment.client import ManagerClient
from nni.experiment.errors import NotFoundError
from nni.nas.execution.saved_model import CODE, FOLDER, SAMPLE, WEIGHTS
from nni_wire.trial_blobs import OUTPUT_ARCHIVE, output_key

_FILES = frozenset({SAMPLE, CODE, WEIGHTS})


def fetch_model(
    client: ManagerClient, experiment_id: str, trial_id: str, folder: Path
) -> list[Path]:
    """Copy a trial's model files into a folder; return their paths; raise if there are none.

    They are in the folder of the trial on this machine, or in the byte store. Nothing is opened.

    Args:
        client: connection to the services.
        experiment_id: the exploration.
        trial_id: the trial.
        folder: made if missing.

    Raises:
        NotFoundError: there is no such trial, or it has left no files.
        ConfigError: the folder cannot be written.
    """
    trial = client.trial(experiment_id, trial_id)
    local = Path(trial.directory) / FOLDER if trial.directory else None
    if local is not None and local.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        found = [
            Path(shutil.copyfile(path, folder / path.name))
            for path in sorted(local.iterdir())
            if path.name in _FILES
        ]
    else:
        found = _fetch_archive(client, experiment_id, trial_id, trial.attempt, folder)
    if not found:
        raise _no_files(trial_id)
    return sorted(found)


def _fetch_archive(
    client: ManagerClient, experiment_id: str, trial_id: str, attempt: int, folder: Path
) -> list[Path]:
    key = output_key(experiment_id, trial_id, attempt, OUTPUT_ARCHIVE)
    try:
        return unpack_files(client.download_key(key), folder, _file_of_model)
    except NotFoundError as error:
        raise _no_files(trial_id) from error


def _file_of_model(name: str, is_file: bool) -> str | None:  # noqa: FBT001 - as `unpack_files` calls it
    path = PurePosixPath(name)
    in_place = is_file and path.parent == PurePosixPath(FOLDER)
    return path.name if in_place and path.name in _FILES else None


def _no_files(trial_id: str) -> NotFoundError:
    return NotFoundError(
        f"trial {trial_id} has left no files of its model; set config.save_models = True before "
        "the search"
    )
