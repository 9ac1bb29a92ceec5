"""Handlers of TensorBoard processes: start, list and stop."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from typing import Any, Final

from starlette.responses import Response

from svc_common.beneath import UnsafePathError
from svc_common.errors import FailedPreconditionError, InvalidArgumentError
from svc_manager.ports import FolderOpener
from svc_manager.web.route import Call, json_response
from svc_manager.web.tensorboards import TensorBoardRun, TensorBoardTask

EVENT_FOLDER: Final = "tensorboard"
"""Folder of a trial's event files, below its output directory."""
TRIALS_LIMIT: Final = 100
"""Maximum number of trials of one TensorBoard."""


async def start_tensorboard(call: Call) -> Response:
    """Start a TensorBoard process over the named trials, or reuse one; respond with its port."""
    runs = []
    found = await call.dependencies.experiments.get(call.experiment_id)
    directory = Path(found.experiment.directory)
    for trial_id in _trial_ids(call.body):
        trial = await call.dependencies.trials.get(call.experiment_id, trial_id)
        # Files of a trial elsewhere come here once it has ended.
        await call.dependencies.experiments.fetch_output(call.experiment_id, trial.id)
        name = f"trials/{trial.id}/{EVENT_FOLDER}"
        await asyncio.to_thread(_check_links, call.dependencies.folders, directory, name)
        folder = Path(trial.directory) / EVENT_FOLDER
        runs.append(TensorBoardRun(trial.id, trial.sequence_id, folder))
    task = await call.dependencies.tensorboards.start(call.experiment_id, runs)
    return json_response(_record(task), status=201)


async def list_tensorboards(call: Call) -> Response:
    """Respond with the running TensorBoard processes of the experiment."""
    await call.dependencies.experiments.get(call.experiment_id)
    tasks = call.dependencies.tensorboards.list(call.experiment_id)
    return json_response([_record(task) for task in tasks])


async def stop_tensorboard(call: Call) -> Response:
    """Stop one TensorBoard; respond with its last record."""
    task = await call.dependencies.tensorboards.stop(call.experiment_id, call.path["task_id"])
    return json_response(_record(task))


async def stop_tensorboards(call: Call) -> Response:
    """Stop all TensorBoard processes of the experiment; respond with an empty list."""
    await call.dependencies.experiments.get(call.experiment_id)
    await call.dependencies.tensorboards.stop_all(call.experiment_id)
    return json_response([])


def _check_links(folders: FolderOpener, directory: Path, name: str) -> None:
    """Raise FailedPreconditionError if a trial's folder of event files holds a symbolic link."""
    try:
        with folders.open(directory) as experiment, experiment.folder(name) as events:
            links = (link for link, status in events.walk() if stat.S_ISLNK(status.st_mode))
            link = next(links, "")
    except UnsafePathError:
        link = name
    except OSError:
        return  # there is no such folder
    if link:
        raise FailedPreconditionError(
            f"TensorBoard would follow the symbolic link {link[:200]!r} below {directory}; "
            "remove it"
        )


def _trial_ids(body: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    """Return the body's `trials` (a list, or text with commas) as ids without repetitions."""
    given = body.get("trials") if isinstance(body, dict) else None
    if isinstance(given, str):
        given = [name for name in given.split(",") if name]
    if not isinstance(given, list) or not given or not all(isinstance(one, str) for one in given):
        raise InvalidArgumentError("trials", "must be a list of trial ids, or text with commas")
    if len(given) > TRIALS_LIMIT:
        raise InvalidArgumentError("trials", f"must be at most {TRIALS_LIMIT}", len(given))
    return list(dict.fromkeys(given))


def _record(task: TensorBoardTask) -> dict[str, Any]:
    return {
        "id": task.id,
        "status": "RUNNING" if task.alive else "STOPPED",
        "trialJobIdList": [run.trial_id for run in task.runs],
        "trialLogDirectoryList": [str(run.directory) for run in task.runs],
        "pid": task.process.pid,
        "port": task.port,
    }
