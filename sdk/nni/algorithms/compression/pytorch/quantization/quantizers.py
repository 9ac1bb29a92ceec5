"""Documented import path for `nni.compression.quantization.legacy_adapters`.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.quantization.legacy_adapters import LegacyBNNQuantizer as BNNQuantizer
from nni.compression.quantization.legacy_adapters import LegacyDoReFaQuantizer as DoReFaQuantizer
from nni.compression.quantization.legacy_adapters import LegacyLsqQuantizer as LsqQuantizer
from nni.compression.quantization.legacy_adapters import LegacyNaiveQuantizer as NaiveQuantizer
from nni.compression.quantization.legacy_adapters import (
    LegacyObserverQuantizer as ObserverQuantizer,
)
from nni.compression.quantization.legacy_adapters import LegacyQATQuantizer as QAT_Quantizer

__all__ = [
    "BNNQuantizer",
    "DoReFaQuantizer",
    "LsqQuantizer",
    "NaiveQuantizer",
    "ObserverQuantizer",
    "QAT_Quantizer",
]
