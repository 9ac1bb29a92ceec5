"""Configuration of counts of FLOPs and parameters, which all formulas read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FlopsParamsCounterConfig:
    """Flags of the parts that counts of FLOPs and parameters include.

    Args:
        count_bias: biases of convolutions and linear layers.
        count_normalization: normalization layers.
        count_activation: activation functions, and softmax of attention.

    Examples:
        >>> FlopsParamsCounterConfig(count_bias=False)
        FlopsParamsCounterConfig(count_bias=False, count_normalization=True, count_activation=True)
    """

    count_bias: bool = True
    count_normalization: bool = True
    count_activation: bool = True
