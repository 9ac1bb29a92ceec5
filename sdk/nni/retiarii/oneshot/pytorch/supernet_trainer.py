"""Base of one-shot trainers of NNI 2.x: loss, metrics and data become an evaluator of `nni.nas`."""

from __future__ import annotations

import logging
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.data import Dataset, Subset

from nni.mutable import Sample
from nni.nas.evaluator.pytorch import DataLoader, Lightning, LightningModule, Trainer
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.nn.pytorch import ModelSpace
from nni.nas.space import RawFormatModelSpace
from nni.nas.strategy.oneshot import OneShotStrategy
from nni.retiarii.oneshot.base_trainer import BaseOneShotTrainer

_logger = logging.getLogger(__name__)

Loss = Callable[[Any, Any], Tensor]
"""Function of logits and targets that returns a loss."""
BatchMetrics = Callable[[Any, Any], Mapping[str, float]]
"""Function of logits and targets that returns metrics by name."""

REWARD = "reward"
"""Metric of a validation step that a policy maximizes."""


class SearchedNetwork(ModelSpace):
    """Network with choices that is no `ModelSpace` itself, as the root of one.

    Args:
        network: the network.
    """

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - those of the network
        """Return what the network returns."""
        return self.network(*args, **kwargs)


class LossModule(LightningModule):
    """Training logic of a loss, metrics and an optimizer that the user has constructed.

    Args:
        loss: function of logits and targets.
        metrics: function of logits and targets.
        optimizer: optimizer of the weights of the network.
        reward: function of logits and targets that a policy maximizes; None without.
        log_frequency: batches between two logs of the metrics; None for none.
    """

    def __init__(
        self,
        loss: Loss,
        metrics: BatchMetrics,
        optimizer: Optimizer,
        reward: Callable[[Any, Any], Any] | None = None,
        log_frequency: int | None = None,
    ) -> None:
        super().__init__()
        self.loss = loss
        self.batch_metrics = metrics
        self.weight_optimizer = optimizer
        self.reward = reward
        self.log_frequency = log_frequency

    def configure_optimizers(self) -> Optimizer:
        """Return the optimizer of the user."""
        return self.weight_optimizer

    def training_step(self, batch: Any, batch_idx: int) -> Tensor:  # noqa: ANN401 - any pair
        """Return the loss of a batch; log metrics every `log_frequency` batches.

        Args:
            batch: inputs and targets.
            batch_idx: position in the epoch.
        """
        inputs, targets = batch
        logits = self.model(inputs)
        loss = self.loss(logits, targets)
        if self.log_frequency is not None and batch_idx % self.log_frequency == 0:
            metrics = {**self.batch_metrics(logits.detach(), targets), "loss": float(loss.detach())}
            shown = ", ".join(f"{name} {float(value):.4f}" for name, value in metrics.items())
            _logger.info("epoch %d, batch %d: %s", self.current_epoch, batch_idx, shown)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:  # noqa: ANN401 - any pair
        """Log the reward of a batch if there is a reward function, else its metrics.

        Args:
            batch: inputs and targets.
            batch_idx: position in the epoch.
        """
        del batch_idx
        inputs, targets = batch
        logits = self.model(inputs)
        if self.reward is not None:
            self.log(REWARD, float(self.reward(logits, targets)))
        else:
            metrics = self.batch_metrics(logits, targets)
            self.log_dict({name: float(value) for name, value in metrics.items()})


class SupernetTrainer(BaseOneShotTrainer):
    """One-shot trainer of NNI 2.x over a strategy of `nni.nas`.

    Args:
        model: network with choices; they are converted in place when the training starts.
        module: training logic.
        num_epochs: number of epochs.
        device: where it is trained; None for a GPU if there is one.
    """

    def __init__(
        self,
        model: nn.Module,
        module: LossModule,
        num_epochs: int,
        device: torch.device | str | None = None,
    ) -> None:
        self.model = model
        self.num_epochs = num_epochs
        self._module = module
        self._device = None if device is None else torch.device(device)
        self._fitted: OneShotStrategy | None = None

    @abstractmethod
    def new_strategy(self) -> OneShotStrategy:
        """Return the strategy that searches."""

    @abstractmethod
    def loaders(self) -> tuple[Any, Any]:
        """Return the loader of weights, and the one of architectures or the validation."""

    def fit(self) -> None:
        """Train and search with a new strategy, kept for `export`; the model becomes a supernet."""
        train, val = self.loaders()
        trainer = Trainer(
            max_epochs=self.num_epochs,
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            num_sanity_val_steps=0,
            **_placement(self._device),
        )
        space = self.model if isinstance(self.model, ModelSpace) else SearchedNetwork(self.model)
        evaluator = Lightning(self._module, trainer, train, val)
        strategy = self.new_strategy()
        strategy(RawFormatModelSpace(space, evaluator), SequentialExecutionEngine())
        self._fitted = strategy

    @property
    def strategy(self) -> OneShotStrategy:
        """Strategy that has searched; RuntimeError before `fit`.

        Raises:
            RuntimeError: it did not search yet.
        """
        if self._fitted is None:
            raise RuntimeError(f"{type(self).__name__} has no architecture yet; call fit first")
        return self._fitted

    def export(self) -> Sample:
        """Return the architecture that the search prefers.

        Returns:
            Values by label, as `fixed_arch` takes them.

        Raises:
            RuntimeError: `fit` was not called.
        """
        return {str(label): value for label, value in self.strategy.export().items()}


def halves(dataset: Dataset[Any], batch_size: int, workers: int) -> tuple[Any, Any]:
    """Return loaders of two random halves of a data set.

    Args:
        dataset: data set with a length.
        batch_size: examples in a batch.
        workers: processes that load data.
    """
    order = torch.randperm(len(dataset)).tolist()  # type: ignore[arg-type]  # it has a length
    middle = len(order) // 2
    first, second = (
        DataLoader(Subset(dataset, part), batch_size, shuffle=True, num_workers=workers)
        for part in (order[:middle], order[middle:])
    )
    return first, second


def _placement(device: torch.device | None) -> dict[str, Any]:
    """Return the arguments of a trainer of Lightning for a device."""
    if device is None:
        return {"accelerator": "auto", "devices": 1}
    if device.type == "cuda":
        return {"accelerator": "gpu", "devices": [device.index or 0]}
    return {"accelerator": device.type, "devices": 1}
