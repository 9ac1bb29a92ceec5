"""Analysis of models for compression: operations, parameters, latency and sensitivity."""

from nni.compression.utils.counter import count_flops_params
from nni.compression.utils.latency import (
    Latency,
    LatencyComparison,
    compare_latency,
    measure_latency,
)
from nni.compression.utils.sensitivity_analysis import SensitivityAnalysis

__all__ = [
    "Latency",
    "LatencyComparison",
    "SensitivityAnalysis",
    "compare_latency",
    "count_flops_params",
    "measure_latency",
]
