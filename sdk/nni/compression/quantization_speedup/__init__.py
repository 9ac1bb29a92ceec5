"""Engines that run quantized models: TensorRT on GPUs, ONNX Runtime as the reference on CPUs.

Names are imported on first use, because they need torch.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.compression.quantization_speedup.calibrator import CalibrateType, Calibrator
    from nni.compression.quantization_speedup.model_speedup_reference import ModelSpeedupReference
    from nni.compression.quantization_speedup.model_speedup_tensorrt import ModelSpeedupTensorRT

__all__ = ["CalibrateType", "Calibrator", "ModelSpeedupReference", "ModelSpeedupTensorRT"]

_HOMES = {
    "CalibrateType": "nni.compression.quantization_speedup.calibrator",
    "Calibrator": "nni.compression.quantization_speedup.calibrator",
    "ModelSpeedupReference": "nni.compression.quantization_speedup.model_speedup_reference",
    "ModelSpeedupTensorRT": "nni.compression.quantization_speedup.model_speedup_tensorrt",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use; raise AttributeError if unknown."""
    if name not in _HOMES:
        raise AttributeError(
            f"module 'nni.compression.quantization_speedup' has no attribute {name!r}"
        )
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
