"""Measurements of the model of a step, and its check against the budget of the job."""

from __future__ import annotations

from torch import nn

from nni.compression.base.evaluator import Evaluator
from nni.compression.job.description import JobDescription
from nni.compression.job.step_files import StepResult
from nni.compression.job.steps import Step, improvements_after
from nni.compression.pipeline.budget import Measurement, check_budget


def evaluated(evaluator: Evaluator, model: nn.Module) -> float:
    """Bind a model to an evaluator, evaluate it and unbind it; return the metric.

    Args:
        evaluator: without a model; so afterwards.
        model: the model, with wrappers or without.
    """
    evaluator.bind_model(model)
    try:
        return evaluator.evaluate()
    finally:
        evaluator.unbind_model()


def parameter_count(model: nn.Module) -> int:
    """Return the number of elements of all parameters, those of norms included."""
    return sum(parameter.numel() for parameter in model.parameters())


def model_bytes(model: nn.Module) -> int:
    """Return the size in bytes of all parameters and buffers."""
    tensors = [*model.parameters(), *model.buffers()]
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def check_step(job: JobDescription, step: Step, result: StepResult) -> None:
    """Raise BudgetError if a step breaks a limit that no later step can mend.

    Args:
        job: the description.
        step: the step.
        result: its result; operations and latency are measured from the step on that may
            improve them.

    Raises:
        BudgetError: see above; names the step as `3 (speedup)`.
    """
    if job.budget is None:
        return
    found = Measurement(
        metric=result.metric,
        parameters=result.parameters,
        size_bytes=result.size_bytes,
        flops=result.flops,
        latency_ms=result.latency_ms,
    )
    check_budget(job.budget, f"{step.number} ({step.kind})", found, improvements_after(job, step))
