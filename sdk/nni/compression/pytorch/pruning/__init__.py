"""Documented import path for `nni.compression`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.iterative_pruner import IterativeAGPPruner as AGPPruner
from nni.compression.pruning.iterative_pruner import IterativeLinearPruner as LinearPruner
from nni.compression.pruning.legacy.basic_pruners import (
    LegacyActivationAPoZRankPruner as ActivationAPoZRankPruner,
)
from nni.compression.pruning.legacy.basic_pruners import (
    LegacyActivationMeanRankPruner as ActivationMeanRankPruner,
)
from nni.compression.pruning.legacy.basic_pruners import LegacyADMMPruner as ADMMPruner
from nni.compression.pruning.legacy.basic_pruners import LegacyFPGMPruner as FPGMPruner
from nni.compression.pruning.legacy.basic_pruners import LegacyL1NormPruner as L1NormPruner
from nni.compression.pruning.legacy.basic_pruners import LegacyL2NormPruner as L2NormPruner
from nni.compression.pruning.legacy.basic_pruners import LegacySlimPruner as SlimPruner
from nni.compression.pruning.legacy.basic_pruners import (
    LegacyTaylorFOWeightPruner as TaylorFOWeightPruner,
)
from nni.compression.pruning.level_pruner import LevelPruner
from nni.compression.pruning.lottery_ticket_pruner import LotteryTicketPruner
from nni.compression.pruning.movement_pruner import MovementPruner
from nni.compression.pruning.simulated_annealing_pruner import SimulatedAnnealingPruner
from nni.compression.scheduling.pruning_scheduler import PruningScheduler

__all__ = [
    "ADMMPruner",
    "AGPPruner",
    "ActivationAPoZRankPruner",
    "ActivationMeanRankPruner",
    "FPGMPruner",
    "L1NormPruner",
    "L2NormPruner",
    "LevelPruner",
    "LinearPruner",
    "LotteryTicketPruner",
    "MovementPruner",
    "PruningScheduler",
    "SimulatedAnnealingPruner",
    "SlimPruner",
    "TaylorFOWeightPruner",
]
