"""Pruners: algorithms that mask the least important parts of a model."""

from nni.compression.pruning.fpgm_pruner import FPGMPruner
from nni.compression.pruning.level_pruner import LevelPruner
from nni.compression.pruning.norm_pruner import L1NormPruner, L2NormPruner

__all__ = ["FPGMPruner", "L1NormPruner", "L2NormPruner", "LevelPruner"]
