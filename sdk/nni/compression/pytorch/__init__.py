"""Documented import path for `nni.compression`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.base.compressor import Compressor
from nni.compression.pruning.legacy.mask_pruner import LegacyPruner as Pruner
from nni.compression.quantization.legacy_quantizer import LegacyQuantizer as Quantizer
from nni.compression.speedup.model_speedup import ModelSpeedup
from nni.compression.utils.compression_results import apply_compression_results

__all__ = ["Compressor", "ModelSpeedup", "Pruner", "Quantizer", "apply_compression_results"]
