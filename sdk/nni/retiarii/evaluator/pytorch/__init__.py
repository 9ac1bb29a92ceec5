"""Evaluators that train with Lightning, with the arguments of NNI 2.x."""

from nni.nas.evaluator.pytorch import DataLoader, Lightning, LightningModule, Trainer
from nni.retiarii.evaluator.pytorch.legacy_tasks import LegacyClassification as Classification
from nni.retiarii.evaluator.pytorch.legacy_tasks import LegacyRegression as Regression

__all__ = [
    "Classification",
    "DataLoader",
    "Lightning",
    "LightningModule",
    "Regression",
    "Trainer",
]
