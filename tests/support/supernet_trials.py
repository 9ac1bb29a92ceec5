"""One-shot search that travels: a small space, and an evaluator of traced parts."""

from __future__ import annotations

from typing import Any

import pytorch_lightning
from torch import Tensor, nn

import nni
from nni.nas.evaluator.pytorch import Classification, DataLoader, Lightning
from nni.nas.nn.pytorch import LayerChoice, ModelSpace
from nni.nas.space import SimplifiedModelSpace
from tests.support.lightning_tasks import FEATURES, QUIET, Points, loader

EPOCHS = 3


class Branches(ModelSpace):
    """Two layers to choose from."""

    def __init__(self) -> None:
        super().__init__()
        layers = {"line": nn.Linear(FEATURES, 2), "plain": nn.Linear(FEATURES, 2, bias=False)}
        self.branch = LayerChoice(layers, label="branch")

    def forward(self, inputs: Tensor) -> Tensor:
        outputs: Tensor = self.branch(inputs)
        return outputs


class KilledError(Exception):
    """Raised in place of a kill."""


@nni.trace
class KilledIn(pytorch_lightning.Callback):
    """Failure at the first batch of an epoch."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def on_train_batch_start(self, trainer: pytorch_lightning.Trainer, *_: Any) -> None:
        if trainer.current_epoch == self.epoch:
            raise KilledError


@nni.trace
class KilledBefore(pytorch_lightning.Callback):
    """Failure before a batch of an epoch."""

    def __init__(self, epoch: int, batch: int) -> None:
        self.epoch = epoch
        self.batch = batch

    def on_train_batch_start(
        self,
        trainer: pytorch_lightning.Trainer,
        pl_module: pytorch_lightning.LightningModule,
        batch: Any,
        batch_idx: int,
    ) -> None:
        if (trainer.current_epoch, batch_idx) == (self.epoch, self.batch):
            raise KilledError


def evaluator(epochs: int = EPOCHS, callbacks: list[Any] | None = None) -> Lightning:
    """Return an evaluator that trains for some epochs."""
    made: Lightning = Classification(
        max_epochs=epochs,
        callbacks=callbacks or [],
        **QUIET,
        train_dataloaders=loader(),
        val_dataloaders=loader(seed=1),
        num_classes=2,
    )
    return made


def branches(epochs: int = EPOCHS, callbacks: list[Any] | None = None) -> SimplifiedModelSpace:
    """Return the space with its evaluator."""
    return SimplifiedModelSpace.from_model(Branches(), evaluator(epochs, callbacks))


def shuffled(callbacks: list[Any]) -> SimplifiedModelSpace:
    """Return the space with two epochs of six batches in random order."""
    evaluator = Classification(
        max_epochs=2,
        callbacks=callbacks,
        **QUIET,
        train_dataloaders=DataLoader(Points(48), 8, shuffle=True),
        val_dataloaders=DataLoader(Points(48, seed=1), 8, shuffle=True),
        num_classes=2,
    )
    return SimplifiedModelSpace.from_model(Branches(), evaluator)
