"""Second spelling of the names of `nni.nas.evaluator.pytorch`."""

from nni.nas.evaluator.pytorch.lightning_evaluator import Lightning
from nni.nas.evaluator.pytorch.lightning_module import LightningModule
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
    "Lightning",
    "LightningModule",
    "Regression",
    "RegressionModule",
    "SupervisedLearningModule",
    "Trainer",
]
