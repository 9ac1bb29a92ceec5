"""Documented import path for the names below.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.speedup.counter import count_flops_params
from nni.compression.utils.shape_dependency import not_safe_to_prune

__all__ = ["count_flops_params", "not_safe_to_prune"]
