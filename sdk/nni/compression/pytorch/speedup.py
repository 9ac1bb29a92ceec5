"""Documented import path for `nni.compression.speedup.model_speedup`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.speedup.model_speedup import ModelSpeedup

__all__ = ["ModelSpeedup"]
