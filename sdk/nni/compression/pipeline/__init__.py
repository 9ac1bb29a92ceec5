"""Pipelines of compression: steps one after another, each measured and checked against a budget."""

from nni.compression.pipeline.budget import Budget, BudgetError, Measurement
from nni.compression.pipeline.run import PipelineResult, StepReport, run_pipeline
from nni.compression.pipeline.steps import DistilStep, FineTuneStep, PipelineStep, PruneStep

__all__ = [
    "Budget",
    "BudgetError",
    "DistilStep",
    "FineTuneStep",
    "Measurement",
    "PipelineResult",
    "PipelineStep",
    "PruneStep",
    "StepReport",
    "run_pipeline",
]
