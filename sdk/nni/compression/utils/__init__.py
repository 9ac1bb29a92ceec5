"""Analysis of models for compression: counts of operations and parameters, and latency."""

from nni.compression.utils.counter import count_flops_params
from nni.compression.utils.latency import (
    Latency,
    LatencyComparison,
    compare_latency,
    measure_latency,
)

__all__ = [
    "Latency",
    "LatencyComparison",
    "compare_latency",
    "count_flops_params",
    "measure_latency",
]
