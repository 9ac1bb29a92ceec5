"""Evaluators of classification and regression in one call."""

from pathlib import Path
from typing import Any

import pytorch_lightning
from torch import nn
from torch.optim import Adam, Optimizer

import nni
from nni.nas.evaluator.pytorch.lightning_evaluator import Lightning
from nni.nas.evaluator.pytorch.supervised import ClassificationModule, RegressionModule
from nni.nas.evaluator.pytorch.traced_originals import Trainer


@nni.trace
class Classification(Lightning):
    """Evaluator that trains a network to classify, and reports the accuracy.

    Args:
        criterion: class of the loss.
        learning_rate: of the optimizer.
        weight_decay: of the optimizer.
        optimizer: class of the optimizer.
        train_dataloaders: loaders for training, made by `nni.nas.evaluator.pytorch.DataLoader`.
        val_dataloaders: loaders for validation; without training loaders the network is validated
            and not trained.
        datamodule: data module of Lightning, in place of loaders.
        export_onnx: write `model.onnx`; see `SupervisedLearningModule`.
        train_dataloader: deprecated name of `train_dataloaders`.
        num_classes: number of classes.
        **trainer_kwargs: arguments of the trainer of Lightning, such as `max_epochs`.

    Raises:
        ValueError: `num_classes` is not given, or loaders are given twice.

    Examples:
        >>> import nni
        >>> evaluator = Classification(
        ...     learning_rate=nni.choice("rate", [0.1, 0.01]), num_classes=10, max_epochs=1,
        ...     accelerator="cpu", logger=False, enable_checkpointing=False,
        ... )
        >>> list(evaluator.simplify()), evaluator.freeze({"rate": 0.01}).get().module.learning_rate
        (['rate'], 0.01)
    """

    def __init__(  # noqa: PLR0913 - as documented
        self,
        criterion: type[nn.Module] = nn.CrossEntropyLoss,
        learning_rate: float = 0.001,
        weight_decay: float = 0.0,
        optimizer: type[Optimizer] = Adam,
        train_dataloaders: Any = None,  # noqa: ANN401 - as Lightning takes them
        val_dataloaders: Any = None,  # noqa: ANN401 - as above
        datamodule: pytorch_lightning.LightningDataModule | None = None,
        export_onnx: bool | str | Path | None = False,  # noqa: FBT001, FBT002 - as documented
        train_dataloader: Any = None,  # noqa: ANN401 - as above
        num_classes: int | None = None,
        **trainer_kwargs: Any,  # noqa: ANN401 - of the trainer
    ) -> None:
        module = ClassificationModule(
            criterion, learning_rate, weight_decay, optimizer, export_onnx, num_classes
        )
        super().__init__(
            module,
            Trainer(**trainer_kwargs),
            train_dataloaders=train_dataloaders,
            val_dataloaders=val_dataloaders,
            train_dataloader=train_dataloader,
            datamodule=datamodule,
        )


@nni.trace
class Regression(Lightning):
    """Evaluator that trains a network to predict numbers, and reports the mean squared error.

    Args:
        criterion: class of the loss.
        learning_rate: of the optimizer.
        weight_decay: of the optimizer.
        optimizer: class of the optimizer.
        train_dataloaders: loaders for training, made by `nni.nas.evaluator.pytorch.DataLoader`.
        val_dataloaders: loaders for validation.
        datamodule: data module of Lightning, in place of loaders.
        export_onnx: write `model.onnx`; see `SupervisedLearningModule`.
        train_dataloader: deprecated name of `train_dataloaders`.
        **trainer_kwargs: arguments of the trainer of Lightning, such as `max_epochs`.

    Raises:
        ValueError: loaders are given twice.

    Examples:
        >>> evaluator = Regression(
        ...     weight_decay=0.1, accelerator="cpu", logger=False, enable_checkpointing=False
        ... )
        >>> evaluator.module.weight_decay
        0.1
    """

    def __init__(  # noqa: PLR0913 - as documented
        self,
        criterion: type[nn.Module] = nn.MSELoss,
        learning_rate: float = 0.001,
        weight_decay: float = 0.0,
        optimizer: type[Optimizer] = Adam,
        train_dataloaders: Any = None,  # noqa: ANN401 - as Lightning takes them
        val_dataloaders: Any = None,  # noqa: ANN401 - as above
        datamodule: pytorch_lightning.LightningDataModule | None = None,
        export_onnx: bool | str | Path | None = False,  # noqa: FBT001, FBT002 - as documented
        train_dataloader: Any = None,  # noqa: ANN401 - as above
        **trainer_kwargs: Any,  # noqa: ANN401 - of the trainer
    ) -> None:
        module = RegressionModule(criterion, learning_rate, weight_decay, optimizer, export_onnx)
        super().__init__(
            module,
            Trainer(**trainer_kwargs),
            train_dataloaders=train_dataloaders,
            val_dataloaders=val_dataloaders,
            train_dataloader=train_dataloader,
            datamodule=datamodule,
        )
