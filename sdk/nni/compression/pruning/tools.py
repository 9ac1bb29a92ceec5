"""Documented import path for `nni.compression`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.legacy.data_collectors import (
    DataCollector,
    SingleHookTrainerBasedDataCollector,
    WeightDataCollector,
    WeightTrainerBasedDataCollector,
)
from nni.compression.pruning.legacy.metrics_calculators import (
    APoZRankMetricsCalculator,
    DistMetricsCalculator,
    MeanRankMetricsCalculator,
    MetricsCalculator,
    MultiDataNormMetricsCalculator,
    NormMetricsCalculator,
)
from nni.compression.pruning.legacy.sparsity_allocators import (
    Conv2dDependencyAwareAllocator,
    GlobalSparsityAllocator,
    NormalSparsityAllocator,
    SparsityAllocator,
)
from nni.compression.pruning.legacy.tool_pruner import ToolPruner as BasicPruner
from nni.compression.scheduling.annealing_generator import SimulatedAnnealingTaskGenerator
from nni.compression.scheduling.growth_generators import (
    AGPTaskGenerator,
    LinearTaskGenerator,
    LotteryTicketTaskGenerator,
)
from nni.compression.scheduling.task import Task, TaskResult
from nni.compression.scheduling.task_generator import TaskGenerator

__all__ = [
    "AGPTaskGenerator",
    "APoZRankMetricsCalculator",
    "BasicPruner",
    "Conv2dDependencyAwareAllocator",
    "DataCollector",
    "DistMetricsCalculator",
    "GlobalSparsityAllocator",
    "LinearTaskGenerator",
    "LotteryTicketTaskGenerator",
    "MeanRankMetricsCalculator",
    "MetricsCalculator",
    "MultiDataNormMetricsCalculator",
    "NormMetricsCalculator",
    "NormalSparsityAllocator",
    "SimulatedAnnealingTaskGenerator",
    "SingleHookTrainerBasedDataCollector",
    "SparsityAllocator",
    "Task",
    "TaskGenerator",
    "TaskResult",
    "WeightDataCollector",
    "WeightTrainerBasedDataCollector",
]
