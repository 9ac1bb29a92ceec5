"""Targets of a quantizer as operators of ONNX: modules that replace their simulation in an export.

An activation becomes QuantizeLinear and DequantizeLinear; a weight becomes stored integers and
DequantizeLinear. A quantizer that does not round to scale * (q - zero_point) keeps its simulation,
computed in floating point.
"""

import logging
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from nni.compression.base.numerics import IntegerRange
from nni.compression.base.target_quantizer import IntegerForm, TargetQuantizer

_logger = logging.getLogger(__name__)

_STEPS: Final = (-0.75, -0.3, 0.0, 0.3)
"""Places between two integers at which a quantizer is tried; halves round either way."""
_OUTSIDE: Final = 3
"""Integers beyond each end of the range at which a quantizer is tried."""
_MOST_BITS: Final = 8
"""Integers of more bits have no kernels in the runtimes."""
_TOLERANCE: Final = 1e-3
"""Largest difference, in steps of the integers, that counts as equal in float32."""


@dataclass(frozen=True, slots=True)
class ExportedIntegers:
    """Stored integers: how QuantizeLinear and DequantizeLinear compute a target."""

    scale: Tensor
    """Without dimensions, or `(channels,)`."""
    zero_point: Tensor
    """Shaped like `scale`, of dtype int8 or uint8."""
    axis: int
    """Dimension of the channels in the target."""
    limits: IntegerRange
    """Smallest and largest integer; a part of the range of the dtype."""

    @property
    def clips(self) -> bool:
        """Return whether the range is narrower than that of the dtype.

        The lowest signed integer may be in use or not: symmetric ranges do not reach it.
        """
        full = torch.iinfo(self.zero_point.dtype)
        return self.limits.qmin > full.min + 1 or self.limits.qmax < full.max

    def spread(self, statistic: Tensor, rank: int) -> Tensor:
        """Return scale or zero point in a shape that broadcasts to the target.

        Args:
            statistic: `scale` or `zero_point`.
            rank: number of dimensions of the target.
        """
        if statistic.dim() == 0:
            return statistic
        return statistic.reshape([-1 if dim == self.axis else 1 for dim in range(rank)])

    def rounded(self, value: Tensor) -> Tensor:
        """Return values clamped and rounded to the integers, as floats again.

        Args:
            value: the target.
        """
        scale, zero_point = self._spread_both(value)
        integers = torch.round((value / scale + zero_point).clamp(*self.limits))
        return (integers - zero_point) * scale

    def stored(self, value: Tensor) -> Tensor:
        """Return the integers of values, in the dtype of the zero point.

        Args:
            value: the target.
        """
        scale, zero_point = self._spread_both(value)
        integers = torch.round(value / scale + zero_point).clamp(*self.limits)
        return integers.to(self.zero_point.dtype)

    def differs(self, one: Tensor, other: Tensor) -> bool:
        """Return whether values, NaN apart, differ by over 1/1000 of a step of the integers.

        Args:
            one: the target.
            other: of the same shape.
        """
        scale, _ = self._spread_both(one)
        return bool(((one - other).abs() > _TOLERANCE * scale).any())

    def _spread_both(self, value: Tensor) -> tuple[Tensor, Tensor]:
        zero_point = self.spread(self.zero_point, value.dim())
        return self.spread(self.scale, value.dim()), zero_point.to(value.dtype)


def exported_activation(quantizer: TargetQuantizer) -> nn.Module | None:
    """Return an activation's ONNX module, or its quantizer in floats; None if nothing changes.

    Args:
        quantizer: in eval mode.

    Returns:
        A module that exports to operators of ONNX; None if the target is left as it is.
    """
    form = quantizer.integer_form()
    if form is None:
        return None
    integers = exported_integers(form)
    if integers is None:
        return _floating(quantizer)
    values = _tried_values(integers, quantizer.scale.dim())
    found = quantizer(values)
    if torch.equal(found, values):
        return None
    if integers.differs(integers.rounded(found), found):
        return _floating(quantizer)
    pair = ExportedPair(integers)
    same = not integers.differs(integers.rounded(values), found)
    return pair if same else nn.Sequential(quantizer, pair)


def exported_parameter(quantizer: TargetQuantizer, value: Tensor) -> nn.Module | None:
    """Return the module that stores a parameter as integers, or rounded; None if not quantized.

    Args:
        quantizer: in eval mode.
        value: the parameter as it is quantized: masked, and with the batch norm folded in.

    Returns:
        A module that exports to stored numbers; None if the target is left as it is.
    """
    form = quantizer.integer_form()
    if form is None:
        return None
    found, integers = quantizer(value), exported_integers(form)
    if integers is not None and not _by_output(quantizer, integers, value.dim()):
        integers = None
    if integers is None or integers.differs(integers.rounded(found), found):
        _warn(quantizer)
        return StoredParameter(found)
    return StoredIntegers(integers, found)


def _by_output(quantizer: TargetQuantizer, integers: ExportedIntegers, rank: int) -> bool:
    """Return whether runtimes multiply products of a parameter by its scales as they are meant.

    ONNX Runtime takes scales of a layer's input channels for those of as many output channels.
    """
    kind = quantizer.place.module_type
    output = 1 if kind.startswith("ConvTranspose") and rank > 1 else 0
    return integers.scale.dim() == 0 or integers.axis == output or kind.startswith("Embedding")


def exported_integers(form: IntegerForm) -> ExportedIntegers | None:
    """Return int8 or uint8 storage for a rounding; None for more bits or several channel axes.

    Args:
        form: how a quantizer rounds.
    """
    scale, zero_point = form.scale.detach().float(), torch.round(form.zero_point.detach())
    axes = [dim for dim, size in enumerate(scale.shape) if size > 1]
    if len(axes) > 1 or form.limits.qmax - form.limits.qmin >= 1 << _MOST_BITS:
        return None
    dtype = torch.int8 if form.limits.qmin < 0 else torch.uint8
    full = torch.iinfo(dtype)
    if zero_point.amin() < full.min or zero_point.amax() > full.max:
        return None
    shape = [-1] if axes else []
    return ExportedIntegers(
        *(scale.reshape(shape), zero_point.reshape(shape).to(dtype)),
        *(axes[0] if axes else 0, form.limits),
    )


class ExportedPair(nn.Module):
    """QuantizeLinear and DequantizeLinear of one activation.

    Args:
        integers: how the activation is stored.
    """

    scale: Tensor
    zero_point: Tensor

    def __init__(self, integers: ExportedIntegers) -> None:
        super().__init__()
        self.integers = integers
        self.register_buffer("scale", integers.scale)
        self.register_buffer("zero_point", integers.zero_point)

    def forward(self, value: Tensor) -> Tensor:
        """Quantize and dequantize the activation by ONNX operators, which only a runtime computes.

        Args:
            value: the activation.
        """
        if self.integers.clips:
            value = self._clipped(value)
        stored = symbolic(
            "QuantizeLinear",
            (value, self.scale, self.zero_point),
            self.integers.axis,
            self.zero_point.dtype,
        )
        return dequantized(stored, self.scale, self.zero_point, self.integers.axis)

    def _clipped(self, value: Tensor) -> Tensor:
        ends = [
            self.integers.spread((limit - self.zero_point.float()) * self.scale, value.dim())
            for limit in self.integers.limits
        ]
        return torch.minimum(torch.maximum(value, ends[0]), ends[1])


class StoredIntegers(nn.Module):
    """Stored integers of a parameter and DequantizeLinear.

    Args:
        integers: how the parameter is stored.
        value: the parameter.
    """

    scale: Tensor
    zero_point: Tensor
    stored: Tensor

    def __init__(self, integers: ExportedIntegers, value: Tensor) -> None:
        super().__init__()
        self.axis = integers.axis
        self.register_buffer("scale", integers.scale)
        self.register_buffer("zero_point", integers.zero_point)
        self.register_buffer("stored", integers.stored(value))

    def forward(self, _value: Tensor) -> Tensor:
        """Return DequantizeLinear of the integers, valid in a runtime only; ignore the argument."""
        return dequantized(self.stored, self.scale, self.zero_point, self.axis)


class StoredParameter(nn.Module):
    """Parameter that is stored in floating point, rounded.

    Args:
        value: the parameter.
    """

    value: Tensor

    def __init__(self, value: Tensor) -> None:
        super().__init__()
        self.register_buffer("value", value.detach().clone())

    def forward(self, _value: Tensor) -> Tensor:
        """Return the stored parameter; the argument does not count."""
        return self.value


def dequantized(stored: Tensor, scale: Tensor, zero_point: Tensor, axis: int) -> Tensor:
    """Return DequantizeLinear of integers, for an export.

    Args:
        stored: integers.
        scale: without dimensions, or `(channels,)`.
        zero_point: shaped like `scale`, of the dtype of `stored`.
        axis: dimension of the channels.
    """
    return symbolic("DequantizeLinear", (stored, scale, zero_point), axis, scale.dtype)


def symbolic(
    operator: str, inputs: tuple[Tensor, Tensor, Tensor], axis: int, dtype: torch.dtype
) -> Tensor:
    """Return a tensor that an operator of ONNX computes; its values count in a runtime only.

    Args:
        operator: name of the operator.
        inputs: its inputs; the output has the shape of the first one.
        axis: its attribute.
        dtype: dtype of the output.
    """
    attributes: Any = {"axis": axis} if inputs[1].dim() else {}
    return torch.onnx.ops.symbolic(operator, inputs, attributes, dtype=dtype, shape=inputs[0].shape)


def _tried_values(integers: ExportedIntegers, rank: int) -> Tensor:
    """Return values around all integers of a target, for each scale.

    Args:
        integers: of the target.
        rank: number of dimensions of its scale.
    """
    low, high = integers.limits.qmin - _OUTSIDE, integers.limits.qmax + _OUTSIDE
    places = torch.arange(low, high + 1)[:, None] + torch.tensor(_STEPS)
    rank = max(rank, 1)
    grid = places.reshape(-1, *[1] * (rank - 1)).to(integers.scale.device)
    zero_point = integers.spread(integers.zero_point, rank).float()
    return (grid - zero_point) * integers.spread(integers.scale, rank)


def _floating(quantizer: TargetQuantizer) -> nn.Module:
    _warn(quantizer)
    return quantizer


def _warn(quantizer: TargetQuantizer) -> None:
    _logger.warning(
        "%s is exported in floating point: %s with %s has no scale and zero point of 8 bits that "
        "runtimes can execute",
        *(quantizer.place.where, type(quantizer).__name__, quantizer.settings.quant_dtype),
    )
