"""Pipelines of compression: steps one after another, each measured and checked against a budget."""

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
