"""Profilers of model spaces in PyTorch: FLOPs, parameters and measured latency."""

from nni.nas.profiler.pytorch.cases import CannotProfileError
from nni.nas.profiler.pytorch.flops import (
    FlopsParamsCounterConfig,
    FlopsParamsProfiler,
    FlopsProfiler,
    FlopsResult,
    NumParamsProfiler,
    count_flops_params,
    profiler_leaf_module,
    register_flops_formula,
    register_shape_inference_formula,
)
from nni.nas.profiler.pytorch.latency import LatencyProfiler, LatencyTable
from nni.nas.profiler.pytorch.nn_meter import NnMeterProfiler
from nni.nas.profiler.pytorch.shapes import MutableShape, ShapeTensor

__all__ = [
    "CannotProfileError",
    "FlopsParamsCounterConfig",
    "FlopsParamsProfiler",
    "FlopsProfiler",
    "FlopsResult",
    "LatencyProfiler",
    "LatencyTable",
    "MutableShape",
    "NnMeterProfiler",
    "NumParamsProfiler",
    "ShapeTensor",
    "count_flops_params",
    "profiler_leaf_module",
    "register_flops_formula",
    "register_shape_inference_formula",
]
