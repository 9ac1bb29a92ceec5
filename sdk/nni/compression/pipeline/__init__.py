"""Pipelines of compression: steps one after another, each measured and checked against a budget.

Names are imported on first use, so that a budget is checked without torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.compression.pipeline.budget import Budget, BudgetError, Measurement
    from nni.compression.pipeline.integer_steps import ExportStep, QuantizeStep
    from nni.compression.pipeline.run import PipelineResult, StepReport, run_pipeline
    from nni.compression.pipeline.steps import DistilStep, FineTuneStep, PipelineStep, PruneStep

__all__ = [
    "Budget",
    "BudgetError",
    "DistilStep",
    "ExportStep",
    "FineTuneStep",
    "Measurement",
    "PipelineResult",
    "PipelineStep",
    "PruneStep",
    "QuantizeStep",
    "StepReport",
    "run_pipeline",
]

_HOMES = {
    "Budget": "nni.compression.pipeline.budget",
    "BudgetError": "nni.compression.pipeline.budget",
    "DistilStep": "nni.compression.pipeline.steps",
    "ExportStep": "nni.compression.pipeline.integer_steps",
    "FineTuneStep": "nni.compression.pipeline.steps",
    "Measurement": "nni.compression.pipeline.budget",
    "PipelineResult": "nni.compression.pipeline.run",
    "PipelineStep": "nni.compression.pipeline.steps",
    "PruneStep": "nni.compression.pipeline.steps",
    "QuantizeStep": "nni.compression.pipeline.integer_steps",
    "StepReport": "nni.compression.pipeline.run",
    "run_pipeline": "nni.compression.pipeline.run",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use; raise AttributeError if unknown."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.compression.pipeline' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
