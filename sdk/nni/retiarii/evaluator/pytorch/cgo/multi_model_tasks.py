"""Training of several models at once, with the arguments of NNI 2.x."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torchmetrics
from torch import nn
from torch.optim import Adam, Optimizer

import nni
from nni.nas.evaluator.pytorch import Lightning
from nni.nas.execution.cgo import MultiModelLightningModule, MultiModelTrainer
from nni.retiarii.deprecation import warn_once
from nni.retiarii.evaluator.pytorch.legacy_tasks import LargestLogitAccuracy

_NEWER = "nni.nas.execution.cgo.MultiModelLightningModule"


@nni.trace
class LegacyMultiModelModule(MultiModelLightningModule):
    """`MultiModelSupervisedLearningModule` of NNI 2.x: classes in place of objects, an optimizer.

    Args:
        criterion: class of the loss, called without arguments.
        metrics: name to class of torchmetrics, called without arguments; one metric.
        learning_rate: of the optimizer.
        weight_decay: of the optimizer.
        optimizer: class of the optimizer.

    Raises:
        ValueError: there is not exactly one metric.
    """

    def __init__(
        self,
        criterion: type[nn.Module],
        metrics: Mapping[str, Callable[[], torchmetrics.Metric]],
        learning_rate: float = 0.001,
        weight_decay: float = 0.0,
        optimizer: type[Optimizer] = Adam,
    ) -> None:
        warn_once("evaluator.pytorch.cgo.evaluator.MultiModelSupervisedLearningModule", _NEWER)
        if len(metrics) != 1:
            raise ValueError(
                "metrics must hold one metric, which is reported for each model, got "
                f"{list(metrics)}"
            )
        super().__init__(criterion(), next(iter(metrics.values()))())
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.optimizer = optimizer

    def configure_optimizers(self) -> Optimizer:
        """Return the optimizer of the parameters of all models."""
        make: Any = self.optimizer
        made: Optimizer = make(
            self.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay
        )
        return made


@nni.trace
class LegacyMultiModelClassification(Lightning):
    """`Classification` of NNI 2.x for several models in one trial; it reports accuracies.

    Args:
        criterion: class of the loss.
        learning_rate: of the optimizer.
        weight_decay: of the optimizer.
        optimizer: class of the optimizer.
        train_dataloader: loader for training.
        val_dataloaders: loaders for validation.
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
        **trainer_kwargs: Any,  # noqa: ANN401 - of the trainer
    ) -> None:
        module = LegacyMultiModelModule(
            criterion, {"acc": LargestLogitAccuracy}, learning_rate, weight_decay, optimizer
        )
        super().__init__(
            module, MultiModelTrainer(**trainer_kwargs), train_dataloader, val_dataloaders
        )


@nni.trace
class LegacyMultiModelRegression(Lightning):
    """`Regression` of NNI 2.x for several models in one trial; it reports mean squared errors.

    Args:
        criterion: class of the loss.
        learning_rate: of the optimizer.
        weight_decay: of the optimizer.
        optimizer: class of the optimizer.
        train_dataloader: loader for training.
        val_dataloaders: loaders for validation.
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
        **trainer_kwargs: Any,  # noqa: ANN401 - of the trainer
    ) -> None:
        metrics = {"mse": torchmetrics.MeanSquaredError}
        module = LegacyMultiModelModule(criterion, metrics, learning_rate, weight_decay, optimizer)
        super().__init__(
            module, MultiModelTrainer(**trainer_kwargs), train_dataloader, val_dataloaders
        )
