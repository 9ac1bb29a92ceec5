"""One-shot trainers of NNI 2.x that learn an architecture by gradients: DARTS and ProxylessNAS."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import Dataset

from nni.mutable import Categorical, Sample
from nni.nas.strategy.oneshot import DARTS, OneShotStrategy, Proxyless
from nni.retiarii.deprecation import warn_once
from nni.retiarii.oneshot.pytorch.supernet_trainer import (
    BatchMetrics,
    Loss,
    LossModule,
    SupernetTrainer,
    halves,
)


class DartsTrainer(SupernetTrainer):
    """`DartsTrainer` of NNI 2.x, over the strategy `DARTS`.

    Args:
        model: network with choices.
        loss: function of logits and targets.
        metrics: function of logits and targets that returns numbers by name.
        optimizer: optimizer of the weights of the network.
        num_epochs: number of epochs.
        dataset: data set; one half trains weights, the other the architecture.
        grad_clip: largest norm of the gradient of the weights; 0 for no limit.
        learning_rate: without effect: the optimizer has its own, which the virtual step uses, too.
        batch_size: examples in a batch.
        workers: processes that load data.
        device: where it is trained; None for a GPU if there is one.
        log_frequency: batches between two logs of the metrics; None for none.
        arc_learning_rate: learning rate of the architecture.
        unrolled: true for the second-order gradient.
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        model: nn.Module,
        loss: Loss,
        metrics: BatchMetrics,
        optimizer: Optimizer,
        num_epochs: int,
        dataset: Dataset[Any],
        grad_clip: float = 5.0,
        learning_rate: float = 2.5e-3,
        batch_size: int = 64,
        workers: int = 4,
        device: torch.device | str | None = None,
        log_frequency: int | None = None,
        arc_learning_rate: float = 3.0e-4,
        unrolled: bool = False,  # noqa: FBT001, FBT002 - documented signature
    ) -> None:
        del learning_rate
        warn_once("oneshot.pytorch.DartsTrainer", "nni.nas.strategy.DARTS")
        module = LossModule(loss, metrics, optimizer, log_frequency=log_frequency)
        super().__init__(model, module, num_epochs, device)
        self._data = (dataset, batch_size, workers)
        self._options: dict[str, Any] = {
            "arc_learning_rate": arc_learning_rate,
            "gradient_clip_val": grad_clip or None,
            "unrolled": unrolled,
        }

    def new_strategy(self) -> DARTS:
        """Return the strategy that searches."""
        return DARTS(**self._options)

    def loaders(self) -> tuple[Any, Any]:
        """Return loaders of the two halves of the data set."""
        return halves(*self._data)


class ProxylessTrainer(SupernetTrainer):
    """`ProxylessTrainer` of NNI 2.x, over the strategy `Proxyless`.

    Args:
        model: network with choices among layers.
        loss: function of logits and targets.
        metrics: function of logits and targets that returns numbers by name.
        optimizer: optimizer of the weights of the network.
        num_epochs: number of epochs.
        dataset: data set; one half trains weights, the other the architecture.
        warmup_epochs: first epochs, in which only the weights are trained.
        batch_size: examples in a batch.
        workers: processes that load data.
        device: where it is trained; None for a GPU if there is one.
        log_frequency: batches between two logs of the metrics; None for none.
        arc_learning_rate: learning rate of the architecture.
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        model: nn.Module,
        loss: Loss,
        metrics: BatchMetrics,
        optimizer: Optimizer,
        num_epochs: int,
        dataset: Dataset[Any],
        warmup_epochs: int = 0,
        batch_size: int = 64,
        workers: int = 4,
        device: torch.device | str | None = None,
        log_frequency: int | None = None,
        arc_learning_rate: float = 1.0e-3,
    ) -> None:
        warn_once("oneshot.pytorch.ProxylessTrainer", "nni.nas.strategy.Proxyless")
        module = LossModule(loss, metrics, optimizer, log_frequency=log_frequency)
        super().__init__(model, module, num_epochs, device)
        self._data = (dataset, batch_size, workers)
        self._options: dict[str, Any] = {
            "arc_learning_rate": arc_learning_rate,
            "warmup_epochs": warmup_epochs,
        }

    def new_strategy(self) -> OneShotStrategy:
        """Return the strategy that searches."""
        return Proxyless(**self._options)

    def loaders(self) -> tuple[Any, Any]:
        """Return loaders of the two halves of the data set."""
        return halves(*self._data)

    def export(self) -> Sample:
        """Return the preferred architecture by label: position of the chosen layer, else the value.

        Returns:
            Position of the chosen layer by label.
        """
        leaves = self.strategy.supernet.simplify()
        return {
            label: list(leaf.values).index(value)
            if isinstance(leaf := leaves[label], Categorical)
            else value
            for label, value in super().export().items()
        }
