"""Documented import path for `nni.compression`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.iterative_pruner import IterativeAGPPruner as AGPPruner
from nni.compression.pruning.iterative_pruner import IterativeLinearPruner as LinearPruner
from nni.compression.pruning.lottery_ticket_pruner import LotteryTicketPruner
from nni.compression.pruning.simulated_annealing_pruner import SimulatedAnnealingPruner
from nni.compression.scheduling.pruning_scheduler import PruningScheduler

__all__ = [
    "AGPPruner",
    "LinearPruner",
    "LotteryTicketPruner",
    "PruningScheduler",
    "SimulatedAnnealingPruner",
]
