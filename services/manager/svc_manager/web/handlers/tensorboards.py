"""TensorBoard over REST: start one over chosen trials, list them, end them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from starlette.responses import Response

from svc_common.errors import InvalidArgumentError
from svc_manager.web.route import Call, json_answer
from svc_manager.web.tensorboards import Run, Task

EVENT_FOLDER: Final = "tensorboard"
"""Where a trial's event files lie, below its output directory."""
TRIALS_LIMIT: Final = 100
"""Most trials of one TensorBoard."""


async def start_tensorboard(call: Call) -> Response:
    """Start one; the same trials get the one that runs already."""
    runs = []
    for trial_id in _trial_ids(call.body):
        trial = await call.installation.trials.get(call.experiment_id, trial_id)
        folder = Path(trial.directory) / EVENT_FOLDER
        runs.append(Run(trial.id, trial.sequence_id, folder))
    task = await call.installation.tensorboards.start(call.experiment_id, runs)
    return json_answer(_record(task), status=201)


async def list_tensorboards(call: Call) -> Response:
    """List those that run for this experiment."""
    await call.installation.experiments.get(call.experiment_id)
    tasks = call.installation.tensorboards.list(call.experiment_id)
    return json_answer([_record(task) for task in tasks])


async def stop_tensorboard(call: Call) -> Response:
    """End one; answers with what it was."""
    task = await call.installation.tensorboards.stop(call.experiment_id, call.path["task_id"])
    return json_answer(_record(task))


async def stop_tensorboards(call: Call) -> Response:
    """End all of this experiment."""
    await call.installation.experiments.get(call.experiment_id)
    await call.installation.tensorboards.stop_all(call.experiment_id)
    return json_answer([])


def _trial_ids(body: Any) -> list[str]:  # noqa: ANN401 - any JSON value
    """Return the trials that a request names, as a list or separated by commas."""
    given = body.get("trials") if isinstance(body, dict) else None
    if isinstance(given, str):
        given = [name for name in given.split(",") if name]
    if not isinstance(given, list) or not given or not all(isinstance(one, str) for one in given):
        raise InvalidArgumentError("trials", "must be a list of trial ids, or text with commas")
    if len(given) > TRIALS_LIMIT:
        raise InvalidArgumentError("trials", f"must be at most {TRIALS_LIMIT}", len(given))
    return list(dict.fromkeys(given))


def _record(task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "status": "RUNNING" if task.alive else "STOPPED",
        "trialJobIdList": [run.trial_id for run in task.runs],
        "trialLogDirectoryList": [str(run.directory) for run in task.runs],
        "pid": task.process.pid,
        "port": task.port,
    }
