"""Rows of NAS-Bench-101: 423,624 cells, each trained three times at four schedules on CIFAR-10.

40,000 images of the original training set are for training and 10,000 for validation; the original
validation set is for tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nni.nas.benchmark.schema import BenchmarkSchema


@dataclass(frozen=True, slots=True)
class Nb101TrialConfig:
    """Configuration of a trial: cell, its number of vertices and hash, number of epochs.

    Examples:
        >>> Nb101TrialConfig({"input1": [0]}, 2, "043721b9c7fe8c5fad811d47d83132ec", 108).num_epochs
        108
    """

    arch: dict[str, Any]
    """`op1`, `op2`, … to names of operations, `input1`, `input2`, … to lists of earlier vertices;
    vertex 0 is the input and has no entry, the last vertex is the output and has no operation."""
    num_vertices: int
    """Number of vertices, at most 7."""
    hash: str
    """MD5 that isomorphic cells share."""
    num_epochs: int
    """Epochs planned for the trial: 4, 12, 36 or 108."""


@dataclass(frozen=True, slots=True)
class Nb101TrialStats:
    """Results of one training: accuracies (percent), parameters (millions), time (seconds).

    The seeds of the trainings were not published.

    Examples:
        >>> config = Nb101TrialConfig({"input1": [0]}, 2, "", 108)
        >>> Nb101TrialStats(config, 100.0, 90.0, 89.0, 0.2, 900.0).valid_acc
        90.0
    """

    config: Nb101TrialConfig
    """Cell and schedule."""
    train_acc: float
    """Final accuracy on training data, 0 to 100."""
    valid_acc: float
    """Final accuracy on validation data, 0 to 100."""
    test_acc: float
    """Final accuracy on test data, 0 to 100."""
    parameters: float
    """Trainable parameters in million."""
    training_time: float
    """Duration of the training in seconds."""


@dataclass(frozen=True, slots=True)
class Nb101IntermediateStats:
    """Accuracies (percent) and time (seconds) at one epoch of a training.

    Examples:
        >>> trial = Nb101TrialStats(Nb101TrialConfig({}, 2, "", 108), 100.0, 90.0, 89.0, 0.2, 900.0)
        >>> Nb101IntermediateStats(trial, 54, 80.0, 78.0, 77.0, 450.0).current_epoch
        54
    """

    trial: Nb101TrialStats
    """Training that the results belong to."""
    current_epoch: int
    """Elapsed epochs."""
    train_acc: float
    """Accuracy on training data, 0 to 100."""
    valid_acc: float
    """Accuracy on validation data, 0 to 100."""
    test_acc: float
    """Accuracy on test data, 0 to 100."""
    training_time: float
    """Elapsed seconds of training."""


NB101_SCHEMA: Final = BenchmarkSchema(
    "nasbench101", Nb101TrialConfig, Nb101TrialStats, Nb101IntermediateStats
)
"""Tables of the database."""
