"""Rows of the NLP benchmark: recurrent cells trained as language models.

Source: Klyuchnikov et al., NAS-Bench-NLP: Neural Architecture Search Benchmark for Natural Language
Processing, 2020.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from nni.nas.benchmark.schema import BenchmarkSchema


@dataclass(frozen=True, slots=True)
class NlpTrialConfig:
    """Configuration of a trial: recurrent cell and data set.

    Examples:
        >>> NlpTrialConfig({"node_0_op": "linear", "node_0_input_0": "x"}, "ptb").dataset
        'ptb'
    """

    arch: dict[str, Any]
    """Recipe of the cell: `{node}_op` to the operation, `{node}_input_{n}` to the inputs."""
    dataset: str
    """`ptb` or `wikitext-2`."""


@dataclass(frozen=True, slots=True)
class NlpTrialStats:
    """Results of one training: losses after the last epoch (None if NaN) and time.

    Examples:
        >>> NlpTrialStats(NlpTrialConfig({}, "ptb"), 4.1, 4.7, 4.6, 177.0).val_loss
        4.7
    """

    config: NlpTrialConfig
    """Recurrent cell and data set."""
    train_loss: float | None
    """Final loss on training data."""
    val_loss: float | None
    """Final loss on validation data."""
    test_loss: float | None
    """Final loss on test data."""
    training_time: float
    """Seconds of the last epoch of training."""


@dataclass(frozen=True, slots=True)
class NlpIntermediateStats:
    """Losses (None if NaN) and time after an epoch of a training.

    Examples:
        >>> trial = NlpTrialStats(NlpTrialConfig({}, "ptb"), 4.1, 4.7, 4.6, 177.0)
        >>> NlpIntermediateStats(trial, 49, 4.2, 4.8, 4.7, 176.0).current_epoch
        49
    """

    trial: NlpTrialStats
    """Training that the results belong to."""
    current_epoch: int
    """Elapsed epochs, from 1 to 50."""
    train_loss: float | None
    """Loss on training data."""
    val_loss: float | None
    """Loss on validation data."""
    test_loss: float | None
    """Loss on test data."""
    training_time: float
    """Seconds of this epoch of training."""


NLP_SCHEMA: Final = BenchmarkSchema("nlp", NlpTrialConfig, NlpTrialStats, NlpIntermediateStats)
"""Tables of the database."""
