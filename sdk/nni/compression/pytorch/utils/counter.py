"""Documented import path for `nni.compression.speedup.counter`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.speedup.counter import count_flops_params

__all__ = ["count_flops_params"]
