"""Runner of all steps of a compression job in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from nni.compression.job import step_files
from nni.compression.job.description import JobDescription
from nni.compression.job.step_files import StepResult
from nni.compression.job.step_run import run_step
from nni.compression.job.steps import step_of


def run_job(
    job: JobDescription | Mapping[str, object],
    folder: str | Path,
    code_directory: str | Path = ".",
    on_step: Callable[[StepResult], object] | None = None,
) -> list[StepResult]:
    """Run a job's incomplete steps in this process; return the results of all steps, in order.

    A run that was interrupted, even by a kill or a cut of power, continues with the step that was
    interrupted when it is called again, and ends with the same masks bit for bit.

    Args:
        job: the description, checked or as decoded JSON.
        folder: folder for the files of the steps, one subfolder for each; it is created.
        code_directory: folder of the modules that the job names, and of its file of weights.
        on_step: called with the result of each step that was run now.

    Returns:
        Results of all steps. The files of the last one are the result of the job: the state of
        the masked model, or what `load_smaller` reads, with `calibration.json` if it is quantized,
        and `model.onnx` if it is exported.

    Raises:
        BudgetError: the budget is broken after a step, and no later one can mend it.
        JobError: the description breaks a rule, or does not fit the code.
        ValueError: the folder has the files of another job.
        OSError: a file cannot be read or written.

    Examples:
        >>> import pathlib
        >>> from nni.compression.job import run_job
        >>> code = pathlib.Path("code")
        >>> code.mkdir()
        >>> _ = (code / "own_network.py").write_text('''
        ... import torch
        ... from nni.compression import TorchEvaluator
        ...
        ... def make():
        ...     return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Linear(8, 1))
        ...
        ... def step(batch, model):
        ...     return model(batch).square().mean()
        ...
        ... def train(model, optimizer, step, schedulers, max_steps, max_epochs):
        ...     for _ in range(max_steps or 4):
        ...         optimizer.zero_grad()
        ...         step(torch.randn(4, 4), model).backward()
        ...         optimizer.step()
        ...
        ... def make_evaluator(model):
        ...     return TorchEvaluator(
        ...         train, torch.optim.SGD(model.parameters(), 0.1), step,
        ...         dummy_input=torch.zeros(1, 4), evaluating_func=lambda model: 0.5,
        ...     )
        ... ''')
        >>> job = {
        ...     "model": {"factory": "own_network:make"},
        ...     "evaluator": {"factory": "own_network:make_evaluator"},
        ...     "config_list": [{"op_names": ["0"], "sparse_ratio": 0.5}],
        ...     "algorithm": {"name": "L1NormPruner"},
        ...     "schedule": {"name": "linear", "iterations": 2},
        ...     "fine_tuning": {"max_steps": 2},
        ...     "speedup": True,
        ... }
        >>> results = run_job(job, "pruned", code)
        >>> [(result.kind, result.parameters) for result in results]
        [('prune', 49), ('prune', 49), ('speedup', 25)]
        >>> results[1].sparsity["0.weight"]
        0.5
    """
    checked = job if isinstance(job, JobDescription) else JobDescription.of(job)
    results: list[StepResult] = []
    previous: Path | None = None
    while (step := step_of(checked, len(results))) is not None:
        own = Path(folder) / f"{step.number:04d}"
        result = step_files.result_in(own, checked.digest)
        if result is None:
            step_files.empty_folder(own)
            result = run_step(checked, step, previous, own, Path(code_directory))
            if on_step is not None:
                on_step(result)
        results.append(result)
        previous = own
    return results
