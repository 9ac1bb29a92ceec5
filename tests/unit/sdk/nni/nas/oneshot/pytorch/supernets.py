"""Small spaces, their training and batches for the tests of one-shot search."""

import warnings
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import nni
from nni.nas.nn.pytorch import (
    Cell,
    InputChoice,
    LayerChoice,
    ModelSpace,
    MutableLinear,
    Repeat,
)
from nni.nas.oneshot.pytorch.architecture import ArchitectureWeights, SampledPath
from nni.nas.oneshot.pytorch.differentiable_modules import mixing_hook
from nni.nas.oneshot.pytorch.mixed_layer import mixing_layer_hook, path_layer_hook
from nni.nas.oneshot.pytorch.path_modules import path_hook
from nni.nas.oneshot.pytorch.supernet import mutate, refuse_remaining


class Scaled(nn.Module):
    """Multiplies its input by a weight."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.factor = nn.Parameter(torch.tensor(factor))

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs * self.factor


class Branches(ModelSpace):
    """One choice among two layers: the first computes zeros, the second can fit a line."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = LayerChoice({"zero": Zero(), "line": nn.Linear(2, 1)}, label="branch")

    def forward(self, inputs: Tensor) -> Tensor:
        return self.branch(inputs)


class Zero(nn.Module):
    """Layer that cannot fit anything."""

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs[:, :1] * 0


class Everything(ModelSpace):
    """Each primitive once."""

    def __init__(self) -> None:
        super().__init__()
        width = nni.choice("width", [2, 4])
        self.enter = MutableLinear(3, width)
        self.leave = MutableLinear(width, 3)
        self.layer = LayerChoice([Scaled(2.0), Scaled(3.0)], label="layer")
        self.blocks = Repeat(lambda index: Scaled(index + 2.0), (1, 3), label="depth")
        self.skip = InputChoice(3, 1, label="skip")
        self.cell = Cell([Scaled(1.0), Scaled(5.0)], 2, 1, 1, label="cell")

    def forward(self, inputs: Tensor) -> Tensor:
        first = self.leave(self.enter(inputs))
        second = self.layer(first)
        third = self.blocks(second)
        merged: Tensor = self.cell(self.skip([first, second, third]))
        return merged


def as_path(space: ModelSpace) -> SampledPath:
    """Convert a space to a supernet of one path, and return its sample."""
    path = SampledPath(space.default_sample())
    mutate(space, [path_hook, path_layer_hook, refuse_remaining], {}, {"path": path})
    space.is_supernet = True
    return path


def as_mixture(
    space: ModelSpace, architecture: ArchitectureWeights | None = None
) -> ArchitectureWeights:
    """Convert a space to a mixture, and return its logits."""
    weights = ArchitectureWeights() if architecture is None else architecture
    hooks = [mixing_hook, mixing_layer_hook, refuse_remaining]
    mutate(space, hooks, {}, {"architecture": weights})
    space.is_supernet = True
    return weights


class Training(pl.LightningModule):
    """Regression with a stepped learning rate, as a user would write it."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model
        self.seen: list[str] = []

    def set_model(self, model: nn.Module) -> None:
        self.model = model

    def training_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> Tensor:
        loss = nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch: tuple[Tensor, Tensor], batch_idx: int) -> None:
        loss = nn.functional.mse_loss(self.model(batch[0]), batch[1])
        self.log("val_loss", loss)
        self.log("score", -loss)

    def on_train_epoch_start(self) -> None:
        self.seen.append("epoch")

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), 0.1)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5)]


def line_data(count: int = 16, seed: int = 0) -> DataLoader[Any]:
    """Return batches of points on a line in two variables."""
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 2, generator=generator)
    return DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=8)


def fit(module: pl.LightningModule, epochs: int = 1, **loaders: Any) -> pl.Trainer:
    """Train without any output."""
    trainer = quiet_trainer(max_epochs=epochs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer.fit(module, **loaders)
    return trainer


def quiet_trainer(**arguments: Any) -> pl.Trainer:
    """Return a trainer on the CPU without any output."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pl.Trainer(
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            **arguments,
        )
