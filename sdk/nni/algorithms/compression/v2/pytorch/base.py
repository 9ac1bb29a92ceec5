"""Documented import path for `nni.compression`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.base.compressor import Compressor
from nni.compression.base.pruner import Pruner
from nni.compression.scheduling.task import Task, TaskResult
from nni.compression.scheduling.task_generator import TaskGenerator

__all__ = ["Compressor", "Pruner", "Task", "TaskGenerator", "TaskResult"]
