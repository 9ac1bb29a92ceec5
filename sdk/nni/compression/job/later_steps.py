"""Run of the steps after the speedup: fine-tuning, quantization, export to ONNX."""

from __future__ import annotations

import inspect
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from nni.compression import quantization
from nni.compression.base.evaluator import Evaluator
from nni.compression.base.model_runs import eval_mode
from nni.compression.job import step_files
from nni.compression.job.description import JobDescription
from nni.compression.job.field_checks import JobError
from nni.compression.job.measuring import check_step, evaluated, parameter_count
from nni.compression.job.step_files import StepResult
from nni.compression.job.step_options import TuningLimits
from nni.compression.job.steps import Step
from nni.compression.pipeline.integer_steps import RuntimeModel
from nni.compression.quantization.presets import config_list_for
from nni.compression.quantization.qdq.simulation import export_wrapped
from nni.compression.utils import compare_latency
from nni.durable_files import write_whole


def run_later_step(
    job: JobDescription,
    step: Step,
    previous: Path,
    folder: Path,
    model: nn.Module,
    evaluator: Evaluator,
) -> StepResult:
    """Fine-tune, quantize or export a model; write the step's files; return its result.

    Args:
        job: the description.
        step: the step.
        previous: folder of the step before.
        folder: folder for the files; it exists and is empty.
        model: the model with the tensors of the step before.
        evaluator: of this model.

    Raises:
        BudgetError: the budget is broken, and no later step can mend it.
        JobError: the description does not fit the model.
        OSError: a file cannot be read or written.
    """
    before = step_files.result_in(previous, job.digest)
    assert before is not None, "only a complete step has a successor"
    result = replace(
        before, number=step.number, kind=step.kind, sparsity={}, error=0.0, latency_before_ms=0.0
    )
    match step.kind:
        case "fine_tune":
            result = _fine_tune(job, result, model, evaluator)
        case "quantize":
            result = _quantize(job, result, folder, model, evaluator)
        case _:
            result = _export(job, result, previous, folder, model, evaluator)
    check_step(job, step, result)
    if (previous / step_files.PLAN).is_file():
        shutil.copyfile(previous / step_files.PLAN, folder / step_files.PLAN)
    step_files.save_model(model, folder)
    step_files.save_step(folder, job.digest, {}, result)
    return result


def _fine_tune(
    job: JobDescription, result: StepResult, model: nn.Module, evaluator: Evaluator
) -> StepResult:
    assert job.speedup is not None, "the job has this step"
    limits = job.speedup.fine_tuning
    assert limits is not None, "the job has this step"
    evaluator.bind_model(model)
    try:
        evaluator.train(limits.max_steps, limits.max_epochs)
    finally:
        evaluator.unbind_model()
    return replace(result, metric=evaluated(evaluator, model))


def _quantize(
    job: JobDescription,
    result: StepResult,
    folder: Path,
    model: nn.Module,
    evaluator: Evaluator,
) -> StepResult:
    """Quantize the model, still of floats; write the calibration; return the step's result."""
    options = job.quantization
    assert options is not None, "the job has this step"
    inputs = evaluator.get_dummy_input()
    entries = options.config_list
    if entries is None:
        entries = tuple(config_list_for(options.runtime, model, _arguments(inputs)))
    quantizer_class: Any = getattr(quantization, options.name)
    arguments = dict(options.arguments or {})
    unknown = set(arguments) - set(inspect.signature(quantizer_class).parameters)
    if unknown:
        field = f"quantization.arguments.{min(unknown)}"
        raise JobError(field, f"is no argument of {options.name}")
    given = {"evaluator": evaluator, "dummy_input": inputs, **arguments}
    quantizer = quantizer_class(model, list(entries), **given)
    quantizer.compress(*_limits(options.fine_tuning))
    with eval_mode(model):
        metric = evaluated(evaluator, model)
    calibration = quantizer.get_calibration_config()
    quantizer.unwrap_model()
    write_whole(folder / step_files.CALIBRATION, json.dumps(calibration))
    return replace(result, metric=metric)


def _export(
    job: JobDescription,
    result: StepResult,
    previous: Path,
    folder: Path,
    model: nn.Module,
    evaluator: Evaluator,
) -> StepResult:
    """Write the model in ONNX; return metric, size and latency of the file in onnxruntime."""
    assert job.export is not None, "the job has this step"
    inputs: Any = evaluator.get_dummy_input()
    path = folder / step_files.ONNX
    calibration = _calibration_in(previous)
    if calibration is None:
        export_wrapped(model, _exported(inputs), path, runtime=None, dynamic_batch=True)
    else:
        assert job.quantization is not None, "there is a calibration"
        shutil.copyfile(previous / step_files.CALIBRATION, folder / step_files.CALIBRATION)
        quantization.export_onnx(
            *(model, calibration, _exported(inputs), path),
            runtime=job.quantization.runtime,
            dynamic_batch=True,
            fold_batch_norms=True,
        )
    threads = job.export.threads
    exported = RuntimeModel(path, threads=threads)
    latency = compare_latency(model, exported, inputs, threads=threads)
    with executed_by(exported, model, inputs):
        metric = evaluated(evaluator, model)
    return replace(
        result,
        metric=metric,
        parameters=parameter_count(model),
        size_bytes=path.stat().st_size,
        latency_before_ms=latency.before.median_ms,
        latency_ms=latency.after.median_ms,
    )


@contextmanager
def executed_by(exported: RuntimeModel, model: nn.Module, example_inputs: object) -> Iterator[None]:
    """Within a block, replace a model's `forward` by a run of its exported file.

    Args:
        exported: runs the file.
        model: the exported model; as before afterwards.
        example_inputs: its only argument, positional ones, or named ones.

    Yields:
        Nothing. Outputs have the structure of those of the model.
    """
    arguments, named = _call(example_inputs)
    with eval_mode(model), torch.no_grad():
        structure = pytree.tree_flatten(model(*arguments, **named))[1]

    def run(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the model's
        return pytree.tree_unflatten(pytree.tree_flatten(exported(*args, **kwargs))[0], structure)

    own = vars(model).get("forward")  # a smaller model may have one that adapts sizes
    model.forward = run
    try:
        yield
    finally:
        del model.forward
        if own is not None:
            model.forward = own


def _limits(limits: TuningLimits | None) -> tuple[int | None, ...]:
    """Return the limits as arguments of `compress`; () for a quantizer without training."""
    return () if limits is None else (limits.max_steps, limits.max_epochs)


def _calibration_in(folder: Path) -> Mapping[str, Mapping[str, object]] | None:
    try:
        text = (folder / step_files.CALIBRATION).read_text("utf-8")
    except FileNotFoundError:
        return None
    found: Mapping[str, Mapping[str, object]] = json.loads(text)
    return found


def _exported(inputs: Any) -> Any:  # noqa: ANN401 - inputs of any form
    return tuple(inputs) if isinstance(inputs, list) else inputs


def _call(inputs: object) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(inputs, dict):
        return (), inputs
    return (tuple(inputs) if isinstance(inputs, list | tuple) else (inputs,)), {}


def _arguments(inputs: object) -> tuple[object, ...]:
    arguments, named = _call(inputs)
    return (*arguments, *named.values())
