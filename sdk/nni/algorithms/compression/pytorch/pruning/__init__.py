"""Documented import path for `nni.compression.pruning`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.auto_compress_pruner import AutoCompressPruner
from nni.compression.pruning.legacy.annealing_pruner import (
    AnnealingPruner as SimulatedAnnealingPruner,
)
from nni.compression.pruning.legacy.epoch_pruners import EpochADMMPruner as ADMMPruner
from nni.compression.pruning.legacy.epoch_pruners import EpochAGPPruner as AGPPruner
from nni.compression.pruning.legacy.epoch_pruners import EpochPruner as IterativePruner
from nni.compression.pruning.legacy.model_pruners import LegacyAMCPruner as AMCPruner
from nni.compression.pruning.legacy.model_pruners import LegacyNetAdaptPruner as NetAdaptPruner
from nni.compression.pruning.legacy.model_pruners import (
    LegacySensitivityPruner as SensitivityPruner,
)
from nni.compression.pruning.legacy.model_pruners import (
    LegacyTransformerHeadPruner as TransformerHeadPruner,
)
from nni.compression.pruning.legacy.one_shot_pruners import one_shot_pruner as OneshotPruner
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
from nni.compression.pruning.legacy.one_shot_weight_pruners import OneShotFPGMPruner as FPGMPruner
from nni.compression.pruning.legacy.one_shot_weight_pruners import (
    OneShotL1FilterPruner as L1FilterPruner,
)
from nni.compression.pruning.legacy.one_shot_weight_pruners import (
    OneShotL2FilterPruner as L2FilterPruner,
)
from nni.compression.pruning.legacy.one_shot_weight_pruners import OneShotLevelPruner as LevelPruner
from nni.compression.pruning.legacy.ticket_pruner import TicketPruner as LotteryTicketPruner

__all__ = [
    "ADMMPruner",
    "AGPPruner",
    "AMCPruner",
    "ActivationAPoZRankFilterPruner",
    "ActivationMeanRankFilterPruner",
    "AutoCompressPruner",
    "FPGMPruner",
    "IterativePruner",
    "L1FilterPruner",
    "L2FilterPruner",
    "LevelPruner",
    "LotteryTicketPruner",
    "NetAdaptPruner",
    "OneshotPruner",
    "SensitivityPruner",
    "SimulatedAnnealingPruner",
    "SlimPruner",
    "TaylorFOWeightFilterPruner",
    "TransformerHeadPruner",
]
