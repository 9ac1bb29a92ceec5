"""Quantizers: tensors as integers with a scale and a zero point.

Names are imported on first use, so that the package does not load all quantizers.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.compression.config.quantization_defaults import (
        quant_scheme_dtype,
        set_quant_scheme_dtype,
    )
    from nni.compression.quantization.bnn_quantizer import BNNQuantizer
    from nni.compression.quantization.dorefa_quantizer import DoReFaQuantizer
    from nni.compression.quantization.gptq_quantizer import GptqQuantizer
    from nni.compression.quantization.lsq_plus_quantizer import LsqPlusQuantizer
    from nni.compression.quantization.lsq_quantizer import LsqQuantizer
    from nni.compression.quantization.naive_quantizer import NaiveQuantizer
    from nni.compression.quantization.observer_quantizer import ObserverQuantizer
    from nni.compression.quantization.onnx_export import export_onnx
    from nni.compression.quantization.pt2e_export import compile_pt2e, export_pt2e
    from nni.compression.quantization.ptq_quantizer import PtqQuantizer
    from nni.compression.quantization.qat_quantizer import QATQuantizer
    from nni.compression.quantization.runtime_sessions import open_session
    from nni.compression.quantization.smoothing import smooth_activations

__all__ = [
    "BNNQuantizer",
    "DoReFaQuantizer",
    "GptqQuantizer",
    "LsqPlusQuantizer",
    "LsqQuantizer",
    "NaiveQuantizer",
    "ObserverQuantizer",
    "PtqQuantizer",
    "QATQuantizer",
    "compile_pt2e",
    "export_onnx",
    "export_pt2e",
    "open_session",
    "quant_scheme_dtype",
    "set_quant_scheme_dtype",
    "smooth_activations",
]

_HOMES = {
    "BNNQuantizer": "nni.compression.quantization.bnn_quantizer",
    "DoReFaQuantizer": "nni.compression.quantization.dorefa_quantizer",
    "GptqQuantizer": "nni.compression.quantization.gptq_quantizer",
    "LsqPlusQuantizer": "nni.compression.quantization.lsq_plus_quantizer",
    "LsqQuantizer": "nni.compression.quantization.lsq_quantizer",
    "NaiveQuantizer": "nni.compression.quantization.naive_quantizer",
    "ObserverQuantizer": "nni.compression.quantization.observer_quantizer",
    "PtqQuantizer": "nni.compression.quantization.ptq_quantizer",
    "QATQuantizer": "nni.compression.quantization.qat_quantizer",
    "compile_pt2e": "nni.compression.quantization.pt2e_export",
    "export_onnx": "nni.compression.quantization.onnx_export",
    "export_pt2e": "nni.compression.quantization.pt2e_export",
    "open_session": "nni.compression.quantization.runtime_sessions",
    "quant_scheme_dtype": "nni.compression.config.quantization_defaults",
    "set_quant_scheme_dtype": "nni.compression.config.quantization_defaults",
    "smooth_activations": "nni.compression.quantization.smoothing",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use; raise AttributeError if unknown."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.compression.quantization' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
