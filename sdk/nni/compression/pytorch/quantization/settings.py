"""Documented import path for `nni.compression.config.quantization_defaults`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.config.quantization_defaults import set_quant_scheme_dtype

__all__ = ["set_quant_scheme_dtype"]
