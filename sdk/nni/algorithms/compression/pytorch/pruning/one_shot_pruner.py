"""Documented import path for the names below.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.legacy.one_shot_pruners import one_shot_pruner as OneshotPruner
from nni.compression.pruning.legacy.one_shot_weight_pruners import OneShotFPGMPruner as FPGMPruner
from nni.compression.pruning.legacy.one_shot_weight_pruners import (
    OneShotL1FilterPruner as L1FilterPruner,
)
from nni.compression.pruning.legacy.one_shot_weight_pruners import (
    OneShotL2FilterPruner as L2FilterPruner,
)
from nni.compression.pruning.legacy.one_shot_weight_pruners import OneShotLevelPruner as LevelPruner

__all__ = ["FPGMPruner", "L1FilterPruner", "L2FilterPruner", "LevelPruner", "OneshotPruner"]
