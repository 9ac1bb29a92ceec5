"""Run of a pipeline: each step is measured and checked before the next one begins."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from nni.compression.pipeline.budget import Budget, Measurement, check_budget
from nni.compression.pipeline.steps import PipelineStep
from nni.compression.speedup.counter import count_flops_params
from nni.compression.utils.latency import measure_latency

Evaluate = Callable[[nn.Module], float]
_ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class StepReport:
    """Name of a step, and the measurement of its model."""

    step: str
    """`original` for the model of the user."""
    found: Measurement


@dataclass(frozen=True, slots=True)
class PipelineResult:
    """Last model of a pipeline, and the reports of its steps.

    Examples:
        >>> from nni.compression.pipeline import Measurement, PipelineResult, StepReport
        >>> found = Measurement(metric=0.9, parameters=70, size_bytes=280, flops=60, latency_ms=8)
        >>> print(PipelineResult(None, (StepReport("original", found),)))
        step      metric  parameters  bytes  FLOPs  ms
        original  0.9     70          280    60     8
    """

    model: nn.Module
    """Model after the last step, in eval mode."""
    reports: tuple[StepReport, ...]
    """The original model, then each step."""

    def __str__(self) -> str:
        """Return the reports as a text table."""
        rows: list[tuple[str, ...]] = [("step", "metric", "parameters", "bytes", "FLOPs", "ms")]
        for report in self.reports:
            found = report.found
            sizes = (found.parameters, found.size_bytes, found.flops)
            rows.append(
                (
                    report.step,
                    f"{found.metric:.4g}",
                    *map(str, sizes),
                    f"{found.latency_ms:.3g}",
                )
            )
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        return "\n".join(
            "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in rows
        )


def run_pipeline(
    model: nn.Module,
    example_inputs: Any,  # noqa: ANN401 - inputs of any form
    steps: Sequence[PipelineStep],
    evaluate: Evaluate,
    budget: Budget | None = None,
    *,
    threads: int | None = 1,
    repeats: int = 30,
    on_report: Callable[[StepReport], object] = lambda _report: None,
) -> PipelineResult:
    """Run steps in turn on a copy of a model; check and report each; return model and reports.

    After each step metric, parameters, bytes, operations and latency are measured. A limit of the
    budget that is broken ends the pipeline unless a later step may mend it.

    Args:
        model: the model; it is not changed.
        example_inputs: a tensor, a list or tuple of positional inputs, or a dict by name.
        steps: in the order in which they run; at least one.
        evaluate: returns the metric of a model in eval mode; larger is better.
        budget: limits of the last model; None for none.
        threads: threads of an operation on the CPU while latency is measured; None for torch's.
        repeats: measurements of latency after each step, >= 1.
        on_report: called with each report, such as `print`.

    Returns:
        The last model and all reports.

    Raises:
        BudgetError: the budget cannot be kept; names the step.
        TypeError: `evaluate` returns no number, or a step returns no module.
        ValueError: there is no step, or two have the same name.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.pipeline import Budget, PruneStep, run_pipeline
        >>> model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
        >>> def evaluate(model):
        ...     return -model(torch.ones(1, 2)).abs().item()
        >>> result = run_pipeline(
        ...     model, torch.ones(1, 2), [PruneStep(0.5)], evaluate, Budget(parameters=20)
        ... )
        >>> [(one.step, one.found.parameters) for one in result.reports]
        [('original', 33), ('prune 0.5', 17)]
    """
    _check_steps(steps)
    original = copy.deepcopy(model).eval()

    def measured(model: nn.Module) -> Measurement:
        return _measure(model.eval(), example_inputs, evaluate, threads, repeats)

    reports = [StepReport(_ORIGINAL, measured(original))]
    on_report(reports[0])
    current = copy.deepcopy(model)
    for index, step in enumerate(steps):
        made: object = step.run(current.train(), original, example_inputs)
        if not isinstance(made, nn.Module):
            kind = type(made).__name__
            raise TypeError(f"step {step.name!r} must return a module, got {kind}")
        current = made
        found = step.counted(measured(current), reports[-1].found)
        reports.append(StepReport(step.name, found))
        on_report(reports[-1])
        if budget is not None:
            later = [one.improves for one in steps[index + 1 :]]
            check_budget(budget, step.name, found, later)
    return PipelineResult(current, tuple(reports))


def _check_steps(steps: Sequence[PipelineStep]) -> None:
    names = [step.name for step in steps]
    if not names:
        raise ValueError("steps must have at least one step")
    for name in names:
        if names.count(name) > 1 or name == _ORIGINAL:
            raise ValueError(f"steps has the name {name!r} twice; give each step a name of its own")


def _measure(
    model: nn.Module,
    example_inputs: Any,  # noqa: ANN401 - as above
    evaluate: Evaluate,
    threads: int | None,
    repeats: int,
) -> Measurement:
    metric = evaluate(model)
    if isinstance(metric, bool) or not isinstance(metric, int | float):
        raise TypeError(f"evaluate must return a number, got {type(metric).__name__}")
    flops, _, _ = count_flops_params(model, example_inputs, verbose=False)
    tensors = [*model.parameters(), *model.buffers()]
    return Measurement(
        metric=float(metric),
        parameters=sum(one.numel() for one in model.parameters()),
        size_bytes=sum(one.numel() * one.element_size() for one in tensors),
        flops=flops,
        latency_ms=measure_latency(
            model, example_inputs, threads=threads, repeats=repeats, warm_up=3
        ).median_ms,
    )
