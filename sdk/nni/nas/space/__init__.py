"""Model spaces: spaces with their evaluator, their formats, states and metrics."""

from nni.nas.space.base import BaseModelSpace
from nni.nas.space.context import current_model, model_context
from nni.nas.space.executable import ExecutableModelSpace, ModelEvaluator
from nni.nas.space.metrics import Metrics
from nni.nas.space.raw import RawFormatModelSpace
from nni.nas.space.simplified import SimplifiedModelSpace
from nni.nas.space.status import ModelStatus

__all__ = [
    "BaseModelSpace",
    "ExecutableModelSpace",
    "Metrics",
    "ModelEvaluator",
    "ModelStatus",
    "RawFormatModelSpace",
    "SimplifiedModelSpace",
    "current_model",
    "model_context",
]
