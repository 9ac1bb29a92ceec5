"""Profilers: what a network of a model space costs, known before it is built.

`nni.nas.profiler.pytorch` has those for PyTorch: FLOPs, parameters, measured latency.
"""

from nni.nas.profiler.base import ExpressionProfiler, Profiler
from nni.nas.profiler.latency_filter import LatencyFilter

__all__ = ["ExpressionProfiler", "LatencyFilter", "Profiler"]
