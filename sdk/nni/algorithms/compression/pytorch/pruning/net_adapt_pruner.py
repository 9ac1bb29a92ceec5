"""Documented import path for `nni.compression.pruning.legacy.model_pruners`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.legacy.model_pruners import LegacyNetAdaptPruner as NetAdaptPruner

__all__ = ["NetAdaptPruner"]
