"""Documented import path for `nni.compression`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.quantization.legacy_quantizer import LegacyQuantizer as Quantizer
from nni.compression.speedup.model_speedup import ModelSpeedup
from nni.compression.utils.compression_results import apply_compression_results

__all__ = ["ModelSpeedup", "Quantizer", "apply_compression_results"]
