"""Documented import path for `nni.compression.pruning.legacy.annealing_pruner`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.legacy.annealing_pruner import (
    AnnealingPruner as SimulatedAnnealingPruner,
)

__all__ = ["SimulatedAnnealingPruner"]
