"""Quantized targets as operators of PT2E, which `torch.compile` computes in integers."""

import importlib
from typing import Any, Final, cast

import torch
from torch import Tensor, nn

from nni.compression.quantization.qdq.targets import (
    ExportedIntegers,
    ExportedPair,
    StoredIntegers,
)

_LIBRARY: Final = "torch.ao.quantization.fx._decomposed"
"""Module of torch that registers the operators; the compiler loads the same."""


def decomposed(module: nn.Module) -> nn.Module:
    """Return the module of PT2E for one of ONNX; others are returned as they are.

    Args:
        module: of an exported target.
    """
    if isinstance(module, ExportedPair):
        return DecomposedPair(module.integers)
    if isinstance(module, StoredIntegers):
        return DecomposedParameter(module)
    if isinstance(module, nn.Sequential):
        return nn.Sequential(*map(decomposed, module))
    return module


class DecomposedPair(nn.Module):
    """Quantization and dequantization of one activation by operators of PT2E.

    Args:
        integers: how the activation is stored.
    """

    scales: Tensor
    zero_points: Tensor

    def __init__(self, integers: ExportedIntegers) -> None:
        super().__init__()
        self.range = _range_of(integers)
        self.axis = integers.axis
        self.register_buffer("scales", integers.scale.clone())
        self.register_buffer("zero_points", integers.zero_point.to(torch.int64))
        # The compiler reads those of a whole tensor from the graph.
        self.of_tensor = None
        if integers.scale.dim() == 0:
            self.of_tensor = (float(integers.scale), int(integers.zero_point))

    def forward(self, value: Tensor) -> Tensor:
        """Return the activation quantized and dequantized, in floating point.

        Args:
            value: the activation.
        """
        operators: Any = _operators()
        if self.of_tensor is None:
            numbers = (self.scales, self.zero_points, self.axis, *self.range)
            integers = operators.quantize_per_channel(value, *numbers)
            return cast("Tensor", operators.dequantize_per_channel(integers, *numbers))
        integers = operators.quantize_per_tensor(value, *self.of_tensor, *self.range)
        return cast(
            "Tensor", operators.dequantize_per_tensor(integers, *self.of_tensor, *self.range)
        )


class DecomposedParameter(nn.Module):
    """Stored integers of a parameter and their dequantization by an operator of PT2E.

    Args:
        source: the integers. One scale is repeated for all channels: the compiler has kernels for
            weights with a scale for each channel alone.
    """

    scales: Tensor
    zero_points: Tensor
    stored: Tensor

    def __init__(self, source: StoredIntegers) -> None:
        super().__init__()
        self.axis = source.axis
        self.range = _whole_range(source.stored.dtype)
        channels = source.stored.shape[self.axis]
        self.register_buffer("stored", source.stored)
        self.register_buffer("scales", source.scale.expand(channels).clone())
        zero_points = source.zero_point.to(torch.int64).expand(channels).clone()
        self.register_buffer("zero_points", zero_points)

    def forward(self, _value: Tensor) -> Tensor:
        """Return the stored integers dequantized; the argument does not count."""
        operators: Any = _operators()
        value = operators.dequantize_per_channel(
            self.stored, self.scales, self.zero_points, self.axis, *self.range
        )
        return cast("Tensor", value)


def _operators() -> object:
    return torch.ops.quantized_decomposed


def load_operators() -> None:
    """Register the operators of PT2E with torch; safe to repeat.

    Raises:
        ImportError: this version of torch has none.
    """
    importlib.import_module(_LIBRARY)


def _range_of(integers: ExportedIntegers) -> tuple[int, int, torch.dtype]:
    limits = integers.limits
    return int(limits.qmin), int(limits.qmax), integers.zero_point.dtype


def _whole_range(dtype: torch.dtype) -> tuple[int, int, torch.dtype]:
    limits = torch.iinfo(dtype)
    return limits.min, limits.max, dtype
