"""Documented import path for `nni.compression`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.base.compressor import Compressor, LayerInfo
from nni.compression.pruning.legacy.mask_pruner import LegacyPruner as Pruner
from nni.compression.quantization.legacy_quantizer import LegacyQuantizer as Quantizer
from nni.compression.quantization.quant_grad import QuantGrad, QuantType

__all__ = ["Compressor", "LayerInfo", "Pruner", "QuantGrad", "QuantType", "Quantizer"]
