"""Evaluators of classification and regression with the arguments of NNI 2.x."""

from pathlib import Path
from typing import Any

import torch
import torchmetrics
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

import nni
from nni.nas.evaluator.pytorch import (
    Lightning,
    RegressionModule,
    SupervisedLearningModule,
    Trainer,
)
from nni.retiarii.deprecation import warn_once


class LargestLogitAccuracy(torchmetrics.Metric):
    """Metric of torchmetrics: fraction of batches' predictions (largest logit) that are right."""

    correct: Tensor
    """Number of right predictions."""
    total: Tensor
    """Number of predictions."""

    def __init__(self) -> None:
        super().__init__()
        self.add_state("correct", torch.tensor(0), dist_reduce_fx="sum")
        self.add_state("total", torch.tensor(0), dist_reduce_fx="sum")

    def update(self, predictions: Tensor, targets: Tensor) -> None:
        """Add a batch.

        Args:
            predictions: `(batch, classes)`, logits.
            targets: `(batch,)`, indices of classes.
        """
        self.correct = self.correct + (predictions.argmax(1) == targets).sum()
        self.total = self.total + targets.numel()

    def compute(self) -> Tensor:
        """Return the fraction of all batches."""
        fraction: Tensor = self.correct / self.total
        return fraction


@nni.trace
class LegacyClassification(Lightning):
    """`Classification` of NNI 2.x: it needs no number of classes, and writes `model.onnx`.

    Args:
        criterion: class of the loss.
        learning_rate: of the optimizer.
        weight_decay: of the optimizer.
        optimizer: class of the optimizer.
        train_dataloader: loader for training.
        val_dataloaders: loaders for validation.
        export_onnx: write `model.onnx`; see `SupervisedLearningModule`.
        **trainer_kwargs: arguments of the trainer of Lightning, such as `max_epochs`.
    """

    def __init__(
        self,
        criterion: type[nn.Module] = nn.CrossEntropyLoss,
        learning_rate: float = 0.001,
        weight_decay: float = 0.0,
        optimizer: type[Optimizer] = Adam,
        train_dataloader: Any = None,  # noqa: ANN401 - as Lightning takes them
        val_dataloaders: Any = None,  # noqa: ANN401 - as above
        export_onnx: bool | str | Path | None = True,  # noqa: FBT001, FBT002 - as documented
        **trainer_kwargs: Any,  # noqa: ANN401 - of the trainer
    ) -> None:
        warn_once("evaluator.pytorch.Classification", "nni.nas.evaluator.pytorch.Classification")
        module = SupervisedLearningModule(
            criterion,
            {"acc": LargestLogitAccuracy},
            learning_rate,
            weight_decay,
            optimizer,
            export_onnx,
        )
        super().__init__(module, Trainer(**trainer_kwargs), train_dataloader, val_dataloaders)


@nni.trace
class LegacyRegression(Lightning):
    """`Regression` of NNI 2.x: it writes `model.onnx`.

    Args:
        criterion: class of the loss.
        learning_rate: of the optimizer.
        weight_decay: of the optimizer.
        optimizer: class of the optimizer.
        train_dataloader: loader for training.
        val_dataloaders: loaders for validation.
        export_onnx: write `model.onnx`; see `SupervisedLearningModule`.
        **trainer_kwargs: arguments of the trainer of Lightning, such as `max_epochs`.
    """

    def __init__(
        self,
        criterion: type[nn.Module] = nn.MSELoss,
        learning_rate: float = 0.001,
        weight_decay: float = 0.0,
        optimizer: type[Optimizer] = Adam,
        train_dataloader: Any = None,  # noqa: ANN401 - as Lightning takes them
        val_dataloaders: Any = None,  # noqa: ANN401 - as above
        export_onnx: bool | str | Path | None = True,  # noqa: FBT001, FBT002 - as documented
        **trainer_kwargs: Any,  # noqa: ANN401 - of the trainer
    ) -> None:
        warn_once("evaluator.pytorch.Regression", "nni.nas.evaluator.pytorch.Regression")
        module = RegressionModule(criterion, learning_rate, weight_decay, optimizer, export_onnx)
        super().__init__(module, Trainer(**trainer_kwargs), train_dataloader, val_dataloaders)
