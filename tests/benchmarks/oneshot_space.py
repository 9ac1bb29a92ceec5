"""Supernet of 8 cells with 16 channels, and steps in turn with a hand-written loop."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import pytorch_lightning as pl
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from nni.nas.nn.pytorch import LayerChoice, ModelSpace

STEPS = int(os.environ.get("NNI_BENCH_STEPS", "200"))
WARM_UP = 3
THREADS = 2
CHANNELS = 16
CELLS = 8
Batch = tuple[Tensor, Tensor]


def operators() -> list[nn.Module]:
    """Return the candidates of one place."""

    def convolution(size: int, groups: int) -> nn.Module:
        return nn.Sequential(
            nn.Conv2d(CHANNELS, CHANNELS, size, padding=size // 2, groups=groups, bias=False),
            nn.BatchNorm2d(CHANNELS),
            nn.ReLU(),
        )

    return [convolution(3, 1), convolution(3, CHANNELS), nn.MaxPool2d(3, 1, 1), nn.Identity()]


class CellNet(ModelSpace):
    """Stem, cells of two choices each whose labels all cells share, and a classifier."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, CHANNELS, 3, padding=1)
        self.first = nn.ModuleList(LayerChoice(operators(), label="first") for _ in range(CELLS))
        self.second = nn.ModuleList(LayerChoice(operators(), label="second") for _ in range(CELLS))
        self.head = nn.Linear(CHANNELS, 10)

    def forward(self, images: Tensor) -> Tensor:
        features = self.stem(images)
        for first, second in zip(self.first, self.second, strict=True):
            features = features + second(first(features))
        logits: Tensor = self.head(features.mean((2, 3)))
        return logits


class Classifying(pl.LightningModule):
    """Training logic of both loops."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def training_step(self, batch: Batch, batch_idx: int) -> Tensor:
        return nn.functional.cross_entropy(self.model(batch[0]), batch[1])

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return weight_optimizer(self.model)


def weight_optimizer(model: nn.Module) -> torch.optim.Optimizer:
    """Return the optimizer of the weights of both loops."""
    return torch.optim.SGD(model.parameters(), 0.025, momentum=0.9, weight_decay=3e-4)


def batch() -> Batch:
    """Return a random batch."""
    return torch.randn(64, 3, 32, 32), torch.randint(10, (64,))


def repeated(one: Batch, count: int) -> Any:
    """Return a loader of the same batch, which costs nothing."""
    return DataLoader([one] * count, batch_size=None)  # type: ignore[arg-type]  # a list is a data set


class Alternation(pl.Callback):
    """Times a step of the trainer, then one of another loop, in turn.

    Args:
        prepare: called after a step of the trainer; returns the step of the other loop.
    """

    def __init__(self, prepare: Callable[[], Callable[[], None]]) -> None:
        self.prepare = prepare
        self.ours: list[float] = []
        self.other: list[float] = []
        self._start = 0.0

    def on_train_start(self, *_: Any) -> None:
        self._start = time.perf_counter()

    def on_train_batch_end(self, *_: Any) -> None:
        end = time.perf_counter()
        step = self.prepare()
        start = time.perf_counter()
        step()
        self._start, before = time.perf_counter(), self._start
        self.ours.append(end - before)
        self.other.append(self._start - start)


def alternate(
    module: pl.LightningModule, loader: Any, prepare: Callable[[], Callable[[], None]]
) -> Alternation:
    """Train a module; return the seconds of its steps and of the other loop, after the warm-up."""
    times = Alternation(prepare)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trainer = pl.Trainer(
            accelerator="cpu",
            max_epochs=1,
            callbacks=[times],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(module, loader)
    del times.ours[:WARM_UP], times.other[:WARM_UP]
    return times
