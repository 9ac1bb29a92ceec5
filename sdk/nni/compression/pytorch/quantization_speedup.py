"""Documented import path for the names below.

Written by `./dev algorithms` from `nni.spellings`; do not edit.
"""

from nni.compression.quantization_speedup.calibrator import CalibrateType, Calibrator
from nni.compression.quantization_speedup.model_speedup_tensorrt import ModelSpeedupTensorRT

__all__ = ["CalibrateType", "Calibrator", "ModelSpeedupTensorRT"]
