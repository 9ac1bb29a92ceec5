"""Trial of a compression job: runs the step that its parameters name, and reports the metric.

`python -m nni.compression.job`, in the code directory of the job. Parameters of the trial:

| parameter | meaning |
|---|---|
| `job` | JSON of the job |
| `step` | number of the step, from 1 |
| `load_checkpoint_dir` | folder of the step before; missing for the first step |
| `save_checkpoint_dir` | folder for the files of this step |
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path

import nni
from nni.compression.config.settings import ConfigListError
from nni.compression.job import step_files
from nni.compression.job.description import JobDescription
from nni.compression.job.field_checks import JobError
from nni.compression.job.step_run import run_step
from nni.compression.job.steps import step_of
from nni.compression.pipeline.budget import BudgetError


def main() -> int:
    """Run the step of this trial and report its result; return 0, or 1 if the job is refused."""
    parameters = nni.get_next_parameter()
    try:
        result = run_trial(parameters, Path.cwd())
    except (BudgetError, JobError, ConfigListError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    nni.report_final_result(result)
    return 0


def run_trial(parameters: Mapping[str, object], code_directory: Path) -> dict[str, object]:
    """Run a job's step unless its files are complete; return its final result as a dict.

    A step whose files are complete, as after a kill between the last file and the report, is not
    run again.

    Args:
        parameters: parameters of the trial.
        code_directory: folder of the job's code.

    Raises:
        BudgetError: the budget is broken after the step.
        JobError: a parameter is missing, or the job does not fit the code.
    """
    job = JobDescription.of(parameters.get("job"))
    number, save = parameters.get("step"), parameters.get("save_checkpoint_dir")
    step = step_of(job, number - 1) if isinstance(number, int) and number > 0 else None
    if step is None:
        raise JobError("step", f"must be the number of a step of the job, got {number!r}")
    if not isinstance(save, str):
        raise JobError("save_checkpoint_dir", f"must be a folder, got {save!r}")
    load = parameters.get("load_checkpoint_dir")
    if (step.number > 1) != isinstance(load, str):
        raise JobError("load_checkpoint_dir", "must be given for all steps but the first one")
    folder = Path(save)
    result = step_files.result_in(folder, job.digest) if folder.is_dir() else None
    if result is None:
        step_files.empty_folder(folder)
        previous = Path(load) if isinstance(load, str) else None
        result = run_step(job, step, previous, folder, code_directory)
    return {"default": result.metric, **asdict(result)}


if __name__ == "__main__":
    sys.exit(main())
