"""Documented import path for the names below.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.quantization.legacy_quantizer import LegacyQuantizer as Quantizer
from nni.compression.quantization.quant_grad import QuantGrad, QuantType

__all__ = ["QuantGrad", "QuantType", "Quantizer"]
