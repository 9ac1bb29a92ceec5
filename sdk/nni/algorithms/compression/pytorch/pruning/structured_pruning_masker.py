"""Documented import path for `nni.compression.pruning.legacy.weight_masker`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.pruning.legacy.weight_masker import StructuredWeightMasker

__all__ = ["StructuredWeightMasker"]
