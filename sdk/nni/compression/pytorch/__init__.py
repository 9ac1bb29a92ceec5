"""Documented import path for the names below.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.speedup.model_speedup import ModelSpeedup
from nni.compression.utils.compression_results import apply_compression_results

__all__ = ["ModelSpeedup", "apply_compression_results"]
