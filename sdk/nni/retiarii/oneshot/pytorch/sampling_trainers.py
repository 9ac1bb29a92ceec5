"""One-shot trainers of NNI 2.x that sample paths: ENAS and single-path."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer
from torch.utils.data import Dataset

from nni.mutable import Sample
from nni.nas.evaluator.pytorch import DataLoader
from nni.nas.strategy.oneshot import ENAS, OneShotStrategy, RandomOneShot
from nni.retiarii.deprecation import warn_once
from nni.retiarii.oneshot.pytorch.reinforce_controller import ReinforceController
from nni.retiarii.oneshot.pytorch.supernet_trainer import (
    REWARD,
    BatchMetrics,
    Loss,
    LossModule,
    SupernetTrainer,
    halves,
)


class RepeatedBatches:
    """Fixed number of batches of a loader, which is started again when it ends.

    Args:
        loader: loader with at least one batch.
        count: number of batches.
    """

    def __init__(self, loader: Iterable[Any], count: int) -> None:
        self.loader = loader
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        rounds = itertools.chain.from_iterable(itertools.repeat(self.loader))
        return itertools.islice(rounds, self.count)


class EnasTrainer(SupernetTrainer):
    """`EnasTrainer` of NNI 2.x, over the strategy `ENAS` with a policy that learns by REINFORCE.

    Args:
        model: network with choices.
        loss: function of logits and targets.
        metrics: function of logits and targets that returns numbers by name.
        reward_function: function of logits and targets that returns the reward of a batch.
        optimizer: optimizer of the weights of the network.
        num_epochs: number of epochs.
        dataset: data set; one half trains weights, the other the policy.
        batch_size: examples in a batch.
        workers: processes that load data.
        device: where it is trained; None for a GPU if there is one.
        log_frequency: batches between two logs of the metrics; None for none.
        grad_clip: largest norm of the gradient of the weights; 0 for no limit.
        entropy_weight: weight of the entropy in the objective of the policy.
        skip_weight: without effect: it is for choices of any number of inputs, which a policy
            does not support.
        baseline_decay: share of the old baseline in the new one.
        ctrl_lr: learning rate of the policy.
        ctrl_steps_aggregate: batches between two updates of the policy.
        ctrl_steps: updates of the policy in an epoch; None for as many as the data allow.
        ctrl_kwargs: `lstm_size`: width of the policy; other arguments of its time have no effect.
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        model: nn.Module,
        loss: Loss,
        metrics: BatchMetrics,
        reward_function: Callable[[Any, Any], Any],
        optimizer: Optimizer,
        num_epochs: int,
        dataset: Dataset[Any],
        batch_size: int = 64,
        workers: int = 4,
        device: torch.device | str | None = None,
        log_frequency: int | None = None,
        grad_clip: float = 5.0,
        entropy_weight: float = 0.0001,
        skip_weight: float = 0.8,
        baseline_decay: float = 0.999,
        ctrl_lr: float = 0.00035,
        ctrl_steps_aggregate: int = 20,
        ctrl_kwargs: Mapping[str, Any] | None = None,
        ctrl_steps: int | None = None,
    ) -> None:
        del skip_weight
        warn_once("oneshot.pytorch.EnasTrainer", "nni.nas.strategy.ENAS")
        module = LossModule(loss, metrics, optimizer, reward_function, log_frequency)
        super().__init__(model, module, num_epochs, device)
        self._data = (dataset, batch_size, workers)
        self._aggregate = ctrl_steps_aggregate
        self._steps = ctrl_steps
        self._grad_clip = grad_clip or None
        self._policy: dict[str, Any] = {
            "learning_rate": ctrl_lr,
            "entropy_weight": entropy_weight,
            "baseline_decay": baseline_decay,
        }
        if "lstm_size" in (ctrl_kwargs or {}):
            self._policy["hidden"] = (ctrl_kwargs or {})["lstm_size"]

    def new_strategy(self) -> ENAS:
        """Return a new `ENAS` with a `ReinforceController` and this trainer's settings."""
        return ENAS(
            batches_per_update=self._aggregate,
            gradient_clip_val=self._grad_clip,
            reward_metric_name=REWARD,
            policy_fn=lambda sizes: ReinforceController(sizes, **self._policy),
            update_kwargs={"batch_size": self._aggregate, "repeat": 1, "update_times": 1},
        )

    def loaders(self) -> tuple[Any, Any]:
        """Return loaders of two random halves; the policy's is repeated if `ctrl_steps` is set."""
        weights, policy = halves(*self._data)
        if self._steps is None:
            return weights, policy
        return weights, RepeatedBatches(policy, self._steps * self._aggregate)


class SinglePathTrainer(SupernetTrainer):
    """`SinglePathTrainer` of NNI 2.x, over the strategy `RandomOneShot`.

    Args:
        model: network with choices.
        loss: function of logits and targets.
        metrics: function of logits and targets that returns numbers by name.
        optimizer: optimizer of the weights of the network.
        num_epochs: number of epochs.
        dataset_train: data set that trains the weights.
        dataset_valid: data set of the validation after each epoch.
        mutator: without effect.
        batch_size: examples in a batch.
        workers: processes that load data.
        device: where it is trained; None for a GPU if there is one.
        log_frequency: batches between two logs of the metrics; None for none.
    """

    def __init__(  # noqa: PLR0913 - documented signature
        self,
        model: nn.Module,
        loss: Loss,
        metrics: BatchMetrics,
        optimizer: Optimizer,
        num_epochs: int,
        dataset_train: Dataset[Any],
        dataset_valid: Dataset[Any],
        mutator: object = None,
        batch_size: int = 64,
        workers: int = 4,
        device: torch.device | str | None = None,
        log_frequency: int | None = None,
    ) -> None:
        del mutator
        warn_once("oneshot.pytorch.SinglePathTrainer", "nni.nas.strategy.RandomOneShot")
        module = LossModule(loss, metrics, optimizer, log_frequency=log_frequency)
        super().__init__(model, module, num_epochs, device)
        self._datasets = (dataset_train, dataset_valid)
        self._loading: dict[str, Any] = {"batch_size": batch_size, "num_workers": workers}

    def new_strategy(self) -> OneShotStrategy:
        """Return the strategy that searches."""
        return RandomOneShot()

    def loaders(self) -> tuple[Any, Any]:
        """Return loaders of the two data sets, that of the training shuffled."""
        train, valid = self._datasets
        return (
            DataLoader(train, shuffle=True, **self._loading),
            DataLoader(valid, **self._loading),
        )

    def export(self) -> Sample:
        """Return a random architecture: this training prefers none.

        Returns:
            Values by label.
        """
        with warnings.catch_warnings(action="ignore"):
            return super().export()
