"""Documented import path for `nni.compression.scheduling`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

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
    "LinearTaskGenerator",
    "LotteryTicketTaskGenerator",
    "SimulatedAnnealingTaskGenerator",
    "Task",
    "TaskGenerator",
    "TaskResult",
]
