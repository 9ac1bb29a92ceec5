"""Run of one step of a compression job, from the files of the step before to its own."""

from __future__ import annotations

import copy
import hashlib
import inspect
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from nni.compression import pruning
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.onnx_export import check_onnx_packages
from nni.compression.base.pruner import Pruner
from nni.compression.job import step_files
from nni.compression.job.description import JobDescription
from nni.compression.job.factories import load_factory
from nni.compression.job.field_checks import JobError
from nni.compression.job.later_steps import run_later_step
from nni.compression.job.measuring import check_step, evaluated, model_bytes, parameter_count
from nni.compression.job.step_files import StepResult
from nni.compression.job.steps import Step, ratio_factor
from nni.compression.speedup import ModelSpeedup, load_smaller, save_smaller
from nni.compression.utils import compare_latency, count_flops_params


def run_step(
    job: JobDescription, step: Step, previous: Path | None, folder: Path, code_directory: Path
) -> StepResult:
    """Build the model, run one step on it, and write its files to a folder; return the result.

    The same job, step and previous files give the same files on the same machine with the same
    number of threads. Generators of random numbers are seeded before the user's factories are
    called, and continue from the previous step after them.

    Args:
        job: the description.
        step: the step.
        previous: folder of the step before; None for the first one.
        folder: folder for the files; it exists and is empty.
        code_directory: folder of the user's modules, and of the file of weights.

    Returns:
        The result, which is also in the folder.

    Raises:
        BudgetError: the budget is broken, and no later step can mend it; the folder is incomplete.
        JobError: the description does not fit the code, the model or the file of weights, or a
            package is missing.
        OSError: a file cannot be read or written.
    """
    _check_packages(job)
    step_files.seed_generators(job.seed)
    model = _model(job, code_directory)
    smaller = previous is not None and (previous / step_files.PLAN).is_file()
    if smaller and previous is not None:
        load_smaller(model, previous)
    pruner_class = _pruner_class(job)
    evaluator = _evaluator(job, model, code_directory)
    if previous is None:
        step_files.seed_generators(job.seed)
    else:
        if not smaller:
            step_files.load_model(model, previous / step_files.MODEL)
        step_files.load_random_states(previous)
    if step.kind == "prune":
        return _prune(job, step, previous, folder, pruner_class, model, evaluator)
    assert previous is not None, "all others follow the last iteration"
    if step.kind == "speedup":
        return _speed_up(job, step, previous, folder, model, evaluator)
    return run_later_step(job, step, previous, folder, model, evaluator)


def _check_packages(job: JobDescription) -> None:
    """Raise JobError if the job exports and this environment lacks a package for that."""
    if job.export is None:
        return
    try:
        check_onnx_packages(with_runtime=True)
    except ImportError as error:
        raise JobError("export", f"cannot run where the steps run: {error}") from error


def _model(job: JobDescription, code_directory: Path) -> nn.Module:
    make = load_factory(job.model.reference, "model.factory", code_directory)
    model = make(**job.model.kwargs)
    if not isinstance(model, nn.Module):
        raise JobError("model.factory", f"must return a torch.nn.Module, got {model!r}")
    if job.weights is not None:
        path = code_directory / f"{job.weights}.safetensors"
        if not path.is_file():
            raise JobError("model.weights", f"names {path.name}, which is not in {code_directory}")
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != job.weights:
                raise JobError("model.weights", f"is not the SHA-256 of {path}; save it again")
        try:
            step_files.load_model(model, path)
        except ValueError as error:
            raise JobError("model.weights", str(error)) from error
    return model


def _evaluator(job: JobDescription, model: nn.Module, code_directory: Path) -> Evaluator:
    make = load_factory(job.evaluator.reference, "evaluator.factory", code_directory)
    evaluator = make(model, **job.evaluator.kwargs)
    if not isinstance(evaluator, Evaluator):
        raise JobError("evaluator.factory", f"must return an evaluator, got {evaluator!r}")
    later = (job.speedup, job.quantization, job.export)
    if any(one is not None for one in later) and evaluator.get_dummy_input() is None:
        problem = "must set dummy_input, which speedup, quantization and export need"
        raise JobError("evaluator.factory", problem)
    return evaluator


def _pruner_class(job: JobDescription) -> type[Pruner]:
    found: type[Pruner] = getattr(pruning, job.algorithm)
    unknown = set(job.arguments) - set(inspect.signature(found).parameters)
    if unknown:
        raise JobError(f"algorithm.arguments.{min(unknown)}", f"is no argument of {job.algorithm}")
    return found


def _prune(
    job: JobDescription,
    step: Step,
    previous: Path | None,
    folder: Path,
    pruner_class: type[Pruner],
    model: nn.Module,
    evaluator: Evaluator,
) -> StepResult:
    pruner = pruner_class(model, job.config_list, evaluator=evaluator, **job.arguments)
    pruner.ratio_factor = ratio_factor(job.schedule, step.number, job.iterations)
    if previous is not None:
        pruner.load_masks(step_files.load_masks_of(previous))
    pruner.compress(job.max_steps, job.max_epochs)
    metric = evaluated(evaluator, model)
    masks = pruner.get_masks()
    pruner.unwrap_model()
    result = StepResult(
        number=step.number,
        kind=step.kind,
        metric=metric,
        sparsity={
            f"{name}.{target}": _masked_part(mask)
            for name, targets in masks.items()
            for target, mask in targets.items()
        },
        parameters=parameter_count(model),
        size_bytes=model_bytes(model),
    )
    check_step(job, step, result)
    step_files.save_model(model, folder)
    step_files.save_step(folder, job.digest, masks, result)
    return result


def _speed_up(
    job: JobDescription,
    step: Step,
    previous: Path,
    folder: Path,
    model: nn.Module,
    evaluator: Evaluator,
) -> StepResult:
    assert job.speedup is not None, "the job has this step"
    inputs: Any = evaluator.get_dummy_input()
    masks = step_files.load_masks_of(previous)
    before = copy.deepcopy(model)
    speedup = ModelSpeedup(
        model,
        inputs,
        masks,
        allow_norm_change=job.speedup.allow_norm_change,
        time_limit_s=job.speedup.time_limit_s,
    )
    speedup.speedup_model()
    report = speedup.report
    assert report is not None, "the speedup is done"
    flops, _, _ = count_flops_params(model, inputs, verbose=False)
    latency = compare_latency(before, model, inputs)
    result = StepResult(
        number=step.number,
        kind=step.kind,
        metric=evaluated(evaluator, model),
        parameters=parameter_count(model),
        size_bytes=model_bytes(model),
        flops=int(flops),
        error=report.error,
        latency_before_ms=latency.before.median_ms,
        latency_ms=latency.after.median_ms,
    )
    check_step(job, step, result)
    save_smaller(model, report, folder)
    step_files.save_step(folder, job.digest, {}, result)
    return result


def _masked_part(mask: Tensor) -> float:
    return 1 - float(mask.double().mean())
