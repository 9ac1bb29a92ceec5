"""Rows of NAS-Bench-201: 15,625 cells, trained on three data sets, one to three times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nni.nas.benchmark.schema import BenchmarkSchema


@dataclass(frozen=True, slots=True)
class Nb201TrialConfig:
    """Configuration of a trial: cell, epochs, channels, number of cells, data set.

    Examples:
        >>> Nb201TrialConfig({"0_1": "none"}, 200, 16, 5, "cifar100").num_channels
        16
    """

    arch: dict[str, Any]
    """`0_1`, `0_2`, `0_3`, `1_2`, `1_3`, `2_3` to names of operations."""
    num_epochs: int
    """Epochs planned for the trial: 12 or 200."""
    num_channels: int
    """Channels of the first convolution; 16 in the published data."""
    num_cells: int
    """Cells of a stage; 5 in the published data."""
    dataset: str
    """`cifar10-valid`: 25,000 images of the training set for training and 25,000 for validation.
    `cifar10`, `cifar100`: the whole training set, and the validation set halved for validation and
    tests. `imagenet16-120`: as these, with 120 classes at 16 by 16."""


@dataclass(frozen=True, slots=True)
class Nb201TrialStats:
    """Results of one training: seed, accuracies, losses, parameters, latency, FLOPs, times.

    Losses that were NaN are None.

    Examples:
        >>> import dataclasses
        >>> len(dataclasses.fields(Nb201TrialStats))
        17
    """

    config: Nb201TrialConfig
    """Cell, schedule and data set."""
    seed: int
    """Seed of the training."""
    train_acc: float
    """Final accuracy on training data, 0 to 100."""
    valid_acc: float
    """Final accuracy on validation data, 0 to 100."""
    test_acc: float
    """Final accuracy on test data, 0 to 100."""
    ori_test_acc: float
    """Accuracy on the original validation set, 0 to 100."""
    train_loss: float | None
    """Final cross entropy on training data."""
    valid_loss: float | None
    """Final cross entropy on validation data."""
    test_loss: float | None
    """Final cross entropy on test data."""
    ori_test_loss: float | None
    """Cross entropy on the original validation set."""
    parameters: float
    """Trainable parameters in million."""
    latency: float
    """Latency of the network in seconds."""
    flops: float
    """FLOPs of the network in million."""
    training_time: float
    """Duration of the training in seconds."""
    valid_evaluation_time: float
    """Duration of an evaluation on validation data in seconds."""
    test_evaluation_time: float
    """Duration of an evaluation on test data in seconds."""
    ori_test_evaluation_time: float
    """Duration of an evaluation on the original validation set in seconds."""


@dataclass(frozen=True, slots=True)
class Nb201IntermediateStats:
    """Accuracies and losses after an epoch of a training; None if not evaluated then.

    Examples:
        >>> import dataclasses
        >>> dataclasses.fields(Nb201IntermediateStats)[1].name
        'current_epoch'
    """

    trial: Nb201TrialStats
    """Training that the results belong to."""
    current_epoch: int
    """Elapsed epochs."""
    train_acc: float | None
    """Accuracy on training data, 0 to 100."""
    valid_acc: float | None
    """Accuracy on validation data, 0 to 100."""
    test_acc: float | None
    """Accuracy on test data, 0 to 100."""
    ori_test_acc: float | None
    """Accuracy on the original validation set, 0 to 100."""
    train_loss: float | None
    """Cross entropy on training data."""
    valid_loss: float | None
    """Cross entropy on validation data."""
    test_loss: float | None
    """Cross entropy on test data."""
    ori_test_loss: float | None
    """Cross entropy on the original validation set."""


NB201_SCHEMA: Final = BenchmarkSchema(
    "nasbench201", Nb201TrialConfig, Nb201TrialStats, Nb201IntermediateStats
)
"""Tables of the database."""
