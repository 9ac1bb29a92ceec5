"""Analysis of models for compression: counts of operations and parameters."""

from nni.compression.utils.counter import count_flops_params

__all__ = ["count_flops_params"]
