"""Documented import path for the names below.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.legacy.epoch_pruners import EpochADMMPruner as ADMMPruner
from nni.compression.pruning.legacy.epoch_pruners import EpochAGPPruner as AGPPruner
from nni.compression.pruning.legacy.epoch_pruners import EpochPruner as IterativePruner
from nni.compression.pruning.legacy.one_shot_training_pruners import (
    OneShotActivationAPoZRankFilterPruner as ActivationAPoZRankFilterPruner,
)
from nni.compression.pruning.legacy.one_shot_training_pruners import (
    OneShotActivationMeanRankFilterPruner as ActivationMeanRankFilterPruner,
)
from nni.compression.pruning.legacy.one_shot_training_pruners import OneShotSlimPruner as SlimPruner
from nni.compression.pruning.legacy.one_shot_training_pruners import (
    OneShotTaylorFOWeightFilterPruner as TaylorFOWeightFilterPruner,
)

__all__ = [
    "ADMMPruner",
    "AGPPruner",
    "ActivationAPoZRankFilterPruner",
    "ActivationMeanRankFilterPruner",
    "IterativePruner",
    "SlimPruner",
    "TaylorFOWeightFilterPruner",
]
