"""Bases of compressors: wrappers, targets, `Compressor`, `Pruner` and `Quantizer`.

Names are imported on first use: `Quantizer` is above the modules here, among the quantizers.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nni.compression.base.compressor import Compressor, LayerInfo
    from nni.compression.base.module_wrapper import ModuleWrapper
    from nni.compression.base.pruner import Pruner
    from nni.compression.base.target_quantizer import TargetPlace, TargetQuantizer
    from nni.compression.config.quantization_settings import (
        QuantizationSetting,
        QuantizationSettings,
    )
    from nni.compression.config.settings import ConfigListError, PruningSetting
    from nni.compression.quantization.quantizer import Quantizer

__all__ = [
    "Compressor",
    "ConfigListError",
    "LayerInfo",
    "ModuleWrapper",
    "Pruner",
    "PruningSetting",
    "QuantizationSetting",
    "QuantizationSettings",
    "Quantizer",
    "TargetPlace",
    "TargetQuantizer",
]

_HOMES = {
    "Compressor": "nni.compression.base.compressor",
    "ConfigListError": "nni.compression.config.settings",
    "LayerInfo": "nni.compression.base.compressor",
    "ModuleWrapper": "nni.compression.base.module_wrapper",
    "Pruner": "nni.compression.base.pruner",
    "PruningSetting": "nni.compression.config.settings",
    "QuantizationSetting": "nni.compression.config.quantization_settings",
    "QuantizationSettings": "nni.compression.config.quantization_settings",
    "Quantizer": "nni.compression.quantization.quantizer",
    "TargetPlace": "nni.compression.base.target_quantizer",
    "TargetQuantizer": "nni.compression.base.target_quantizer",
}


def __getattr__(name: str) -> object:
    """Import a public name from its module on first use; raise AttributeError if unknown."""
    if name not in _HOMES:
        raise AttributeError(f"module 'nni.compression.base' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
