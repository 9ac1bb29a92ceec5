"""Pruners: algorithms that mask the least important parts of a model."""

from nni.compression.pruning.activation_pruner import (
    ActivationAPoZRankPruner,
    ActivationMeanRankPruner,
)
from nni.compression.pruning.admm_pruner import ADMMPruner
from nni.compression.pruning.amc_pruner import AMCPruner
from nni.compression.pruning.auto_compress_pruner import AutoCompressPruner
from nni.compression.pruning.fpgm_pruner import FPGMPruner
from nni.compression.pruning.level_pruner import LevelPruner
from nni.compression.pruning.lottery_ticket_pruner import LotteryTicketPruner
from nni.compression.pruning.movement_pruner import MovementPruner
from nni.compression.pruning.net_adapt_pruner import NetAdaptPruner
from nni.compression.pruning.norm_pruner import L1NormPruner, L2NormPruner
from nni.compression.pruning.scheduled_pruner import AGPPruner, LinearPruner
from nni.compression.pruning.sensitivity_pruner import SensitivityPruner
from nni.compression.pruning.simulated_annealing_pruner import SimulatedAnnealingPruner
from nni.compression.pruning.slim_pruner import SlimPruner
from nni.compression.pruning.taylor_pruner import TaylorFOWeightPruner, TaylorPruner
from nni.compression.pruning.transformer_head_pruner import TransformerHeadPruner
from nni.compression.scheduling.pruning_scheduler import PruningScheduler

__all__ = [
    "ADMMPruner",
    "AGPPruner",
    "AMCPruner",
    "ActivationAPoZRankPruner",
    "ActivationMeanRankPruner",
    "AutoCompressPruner",
    "FPGMPruner",
    "L1NormPruner",
    "L2NormPruner",
    "LevelPruner",
    "LinearPruner",
    "LotteryTicketPruner",
    "MovementPruner",
    "NetAdaptPruner",
    "PruningScheduler",
    "SensitivityPruner",
    "SimulatedAnnealingPruner",
    "SlimPruner",
    "TaylorFOWeightPruner",
    "TaylorPruner",
    "TransformerHeadPruner",
]
