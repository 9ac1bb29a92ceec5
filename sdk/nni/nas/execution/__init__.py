"""Engines that evaluate models: the contract, events, in this process, and as trials."""

import importlib
from typing import TYPE_CHECKING

from nni.nas.execution.base import ExecutionEngine, Middleware, WorkerInfo
from nni.nas.execution.events import (
    FinalMetricEvent,
    IntermediateMetricEvent,
    ModelEvent,
    ModelEventType,
    TrainingEndEvent,
)

if TYPE_CHECKING:
    from nni.nas.execution.sequential import SequentialExecutionEngine
    from nni.nas.execution.training_service import TrainingServiceExecutionEngine

__all__ = [
    "ExecutionEngine",
    "FinalMetricEvent",
    "IntermediateMetricEvent",
    "Middleware",
    "ModelEvent",
    "ModelEventType",
    "SequentialExecutionEngine",
    "TrainingEndEvent",
    "TrainingServiceExecutionEngine",
    "WorkerInfo",
]

_HOMES = {
    "SequentialExecutionEngine": "nni.nas.execution.sequential",
    "TrainingServiceExecutionEngine": "nni.nas.execution.training_service",
}
"""Home of each engine; loaded on first use, since a strategy needs the contract only."""


def __getattr__(name: str) -> object:
    """Import an engine from its home the first time it is used."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.nas.execution' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted({*globals(), *__all__})
