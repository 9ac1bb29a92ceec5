"""Evaluators of architecture search: they train and validate models, and report metrics.

Names of the default framework (`Classification` and others) are imported at first use.
"""

from nni.common.framework import shortcut
from nni.nas.evaluator.base import Evaluator, FrozenEvaluator, MutableEvaluator
from nni.nas.evaluator.functional import FunctionalEvaluator
from nni.nas.evaluator.multi_objective import MultiObjectiveEvaluator

__all__ = [
    "Evaluator",
    "FrozenEvaluator",
    "FunctionalEvaluator",
    "MultiObjectiveEvaluator",
    "MutableEvaluator",
]

__getattr__ = shortcut(__name__)
