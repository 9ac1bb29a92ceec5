"""Evaluators that train with Lightning: classification, regression, and modules of one's own."""

from nni.nas.evaluator.pytorch.lightning_evaluator import Lightning
from nni.nas.evaluator.pytorch.lightning_module import LightningModule
from nni.nas.evaluator.pytorch.objectives import (
    ForwardTime,
    parameter_bytes,
    parameter_count,
)
from nni.nas.evaluator.pytorch.supervised import (
    ClassificationModule,
    RegressionModule,
    SupervisedLearningModule,
)
from nni.nas.evaluator.pytorch.tasks import Classification, Regression
from nni.nas.evaluator.pytorch.traced_originals import DataLoader, Trainer

__all__ = [
    "Classification",
    "ClassificationModule",
    "DataLoader",
    "ForwardTime",
    "Lightning",
    "LightningModule",
    "Regression",
    "RegressionModule",
    "SupervisedLearningModule",
    "Trainer",
    "parameter_bytes",
    "parameter_count",
]
