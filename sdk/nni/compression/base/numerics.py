"""Numerics that all quantizers share: pure functions on tensors.

A value x is represented by the integer q = round(x / scale + zero_point), clamped to [qmin, qmax]
before it is rounded; it stands for scale * (q - zero_point). Rounding is to the nearest integer,
halves to even.
"""

import math
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import torch
from torch import Tensor

Scheme = Literal["symmetric", "affine"]

SCALE_FLOOR: Final = torch.finfo(torch.float32).eps
"""Smallest scale: a range of zeros still has a number to divide by."""
_BITS_LIMIT: Final = 32


class IntegerRange(NamedTuple):
    """Smallest and largest integer of a quantized value."""

    qmin: int
    qmax: int


@dataclass(frozen=True, slots=True)
class IntegerType:
    """Integer type of quantized values: number of bits up to 32, and whether it is signed."""

    bits: int
    """From 1 to 32; 1 for signed values is not allowed."""
    signed: bool

    def __post_init__(self) -> None:
        """Raise ValueError if the number of bits is out of range.

        Raises:
            ValueError: it is out of range.
        """
        least = 2 if self.signed else 1
        if not least <= self.bits <= _BITS_LIMIT:
            kind = "int" if self.signed else "uint"
            raise ValueError(
                f"bits of {kind} must be from {least} to {_BITS_LIMIT}, got {self.bits}"
            )

    @property
    def range(self) -> IntegerRange:
        """Return smallest and largest integer; a signed type has no lowest one, such as -128.

        Examples:
            >>> IntegerType(8, signed=True).range
            IntegerRange(qmin=-127, qmax=127)
            >>> IntegerType(8, signed=False).range
            IntegerRange(qmin=0, qmax=255)
        """
        if self.signed:
            largest = (1 << (self.bits - 1)) - 1
            return IntegerRange(-largest, largest)
        return IntegerRange(0, (1 << self.bits) - 1)


def scale_and_zero_point(
    smallest: Tensor, largest: Tensor, integer: IntegerType, scheme: Scheme
) -> tuple[Tensor, Tensor]:
    """Return scale and zero point of a range, extended to 0, for an integer type and scheme.

    Args:
        smallest: any shape; the range is widened to contain 0.
        largest: the same shape, nowhere less than `smallest`.
        integer: type of the quantized values.
        scheme: `symmetric`: the range is widened to be symmetric around 0; `affine`: it is used as
            it is.

    Returns:
        Scale, > 0, and zero point, a whole number; both of the shape of the range.

    Examples:
        >>> scale, zero = scale_and_zero_point(
        ...     torch.tensor(-1.0), torch.tensor(3.0), IntegerType(8, signed=False), "affine"
        ... )
        >>> round(float(scale) * 255, 4), float(zero)
        (4.0, 64.0)
    """
    qmin, qmax = integer.range
    smallest, largest = smallest.clamp(max=0), largest.clamp(min=0)
    if scheme == "symmetric":
        scale = torch.maximum(-smallest, largest) / ((qmax - qmin) / 2)
        middle = 0 if integer.signed else (qmin + qmax + 1) // 2
        return scale.clamp(min=SCALE_FLOOR), torch.full_like(scale, middle)
    scale = ((largest - smallest) / (qmax - qmin)).clamp(min=SCALE_FLOOR)
    return scale, (qmin - torch.round(smallest / scale)).clamp(qmin, qmax)


def quantized(value: Tensor, scale: Tensor, zero_point: Tensor, integer: IntegerType) -> Tensor:
    """Return value / scale + zero_point, clamped to the type's range, rounded, as floats.

    Args:
        value: any shape.
        scale: a shape that broadcasts to that of `value`.
        zero_point: likewise.
        integer: type of the quantized values.

    Returns:
        Whole numbers in the range of the type, of the shape and dtype of `value`.
    """
    qmin, qmax = integer.range
    return torch.round((value / scale + zero_point).clamp(qmin, qmax))


def dequantized(integers: Tensor, scale: Tensor, zero_point: Tensor) -> Tensor:
    """Return scale * (integers - zero_point), the values that integers represent.

    Args:
        integers: any shape.
        scale: a shape that broadcasts to that of `integers`.
        zero_point: likewise.
    """
    return scale * (integers - zero_point)


def simulated(value: Tensor, scale: Tensor, zero_point: Tensor, integer: IntegerType) -> Tensor:
    """Return values rounded to what integers can represent; the gradient passes unchanged.

    Args:
        value: any shape.
        scale: a shape that broadcasts to that of `value`; gets no gradient.
        zero_point: likewise.
        integer: type of the quantized values.

    Returns:
        A tensor of the shape and dtype of `value`.

    Source: Bengio et al., Estimating or Propagating Gradients Through Stochastic Neurons, 2013
        (straight-through estimator).

    Examples:
        >>> one = torch.ones(())
        >>> simulated(torch.tensor([0.4, 0.6, 9.0]), one, 0 * one, IntegerType(3, signed=True))
        tensor([0., 1., 3.])
    """
    with torch.no_grad():
        integers = quantized(value, scale, zero_point, integer)
        difference = dequantized(integers, scale, zero_point) - value
    return value + difference


def simulated_with_clipped_gradient(
    value: Tensor, scale: Tensor, zero_point: Tensor, integer: IntegerType
) -> Tensor:
    """Return the same as `simulated`; no gradient passes where a value is out of range.

    Args:
        value: any shape.
        scale: a shape that broadcasts to that of `value`; gets no gradient.
        zero_point: likewise.
        integer: type of the quantized values.

    Returns:
        A tensor of the shape and dtype of `value`.

    Source: Jacob et al., Quantization and Training of Neural Networks, 2018, section 3.
    """
    qmin, qmax = integer.range
    with torch.no_grad():
        place = torch.round(value / scale + zero_point)
        inside = (place >= qmin) & (place <= qmax)
        rounded = dequantized(place.clamp(qmin, qmax), scale, zero_point)
    passing = torch.where(inside, value, value.detach())
    return passing + (rounded - value).detach()


def truncated(value: Tensor, scale: Tensor) -> Tensor:
    """Return values rounded towards zero to multiples of a scale; the gradient passes unchanged.

    Args:
        value: any shape.
        scale: a shape that broadcasts to that of `value`; gets no gradient.

    Examples:
        >>> truncated(torch.tensor([-1.9, 0.9, 2.0]), torch.ones(()))
        tensor([-1.,  0.,  2.])
    """
    return value + (torch.trunc(value / scale) * scale - value).detach()


def moving_average(tracked: Tensor, observed: Tensor, decay: float) -> Tensor:
    """Return tracked * decay + observed * (1 - decay), an exponential moving average.

    Args:
        tracked: average so far.
        observed: new value, of the same shape.
        decay: weight of the average so far, in [0, 1].

    Examples:
        >>> moving_average(torch.tensor(1.0), torch.tensor(2.0), 0.99)
        tensor(1.0100)
    """
    return tracked * decay + observed * (1 - decay)


def reduced_range(value: Tensor, channel_dim: int | None) -> tuple[Tensor, Tensor]:
    """Return the smallest and the largest value, of all or of each channel.

    Args:
        value: any shape, not empty.
        channel_dim: dimension of the channels; None for one range of all values.

    Returns:
        Two tensors without dimensions, or with the dimensions of `value` and size 1 in all but the
        channels.

    Examples:
        >>> smallest, largest = reduced_range(torch.tensor([[1.0, -2.0], [3.0, 4.0]]), 0)
        >>> smallest.flatten().tolist(), largest.flatten().tolist()
        ([-2.0, 3.0], [1.0, 4.0])
    """
    if channel_dim is None:
        return value.amin(), value.amax()
    others = [dim for dim in range(value.dim()) if dim != channel_dim % value.dim()]
    if not others:
        return value, value
    return value.amin(others, keepdim=True), value.amax(others, keepdim=True)


def learned_step_scale(value: Tensor, qmax: int) -> Tensor:
    """Return the initial scale of learned step size quantization: 2 mean|x| / sqrt(qmax).

    Args:
        value: `(..., elements)`, not empty; the elements share a scale.
        qmax: largest integer, >= 1.

    Returns:
        `(...)`, > 0.

    Source: Esser et al., Learned Step Size Quantization, 2020, section 2.1.

    Examples:
        >>> learned_step_scale(torch.tensor([-2.0, 2.0]), 4)
        tensor(2.)
    """
    scale = 2 * value.detach().abs().mean(-1) / math.sqrt(qmax)
    return scale.clamp(min=SCALE_FLOOR)


def learned_step(value: Tensor, scale: Tensor, limits: IntegerRange) -> Tensor:
    """Return values quantized with zero point 0 and dequantized; the scale gets a gradient, too.

    The gradient of a scale is multiplied by 1 / sqrt(elements that share it * qmax).

    Args:
        value: any shape.
        scale: a shape that broadcasts to that of `value`, > 0.
        limits: range of the integers; the zero point is 0.

    Returns:
        A tensor of the shape of `value`.

    Source: Esser et al., Learned Step Size Quantization, 2020, equations 1 to 3 and section 2.2.
    """
    scale = _with_gradient_factor(scale, _step_factor(value, scale, limits))
    clamped = (value / scale).clamp(limits.qmin, limits.qmax)
    return _rounded_straight_through(clamped) * scale


def learned_affine_step(
    value: Tensor, scale: Tensor, zero_point: Tensor, limits: IntegerRange
) -> Tensor:
    """Return values quantized and dequantized; scale and zero point get gradients, too.

    The gradient of the zero point is minus the scale where a value is out of range, and 0
    elsewhere. Both gradients are multiplied as in `learned_step`.

    Args:
        value: any shape.
        scale: a shape that broadcasts to that of `value`, > 0.
        zero_point: likewise; it need not be a whole number.
        limits: range of the integers.

    Returns:
        A tensor of the shape of `value`.

    Source: Bhalgat et al., LSQ+: Improving Low-Bit Quantization through Learnable Offsets and
        Better Initialization, 2020, section 3.1.

    Departures: the offset of the paper is -scale * zero_point here, and the zero point is rounded,
        because runtimes add an integer.
    """
    factor = _step_factor(value, scale, limits)
    scale = _with_gradient_factor(scale, factor)
    zero_point = _rounded_straight_through(_with_gradient_factor(zero_point, factor))
    clamped = (value / scale + zero_point).clamp(limits.qmin, limits.qmax)
    return (_rounded_straight_through(clamped) - zero_point) * scale


def dorefa_weight(weight: Tensor, bits: int) -> Tensor:
    """Return weights by a tanh scaled to [-1, 1], in 2^bits levels; rounding has gradient 1.

    Args:
        weight: any shape, not all zero.
        bits: from 1 to 32.

    Source: Zhou et al., DoReFa-Net, 2016, equation 9.

    Examples:
        >>> dorefa_weight(torch.tensor([-1.0, 0.0, 0.5, 1.0]), 2)
        tensor([-1.0000,  0.3333,  0.3333,  1.0000])
    """
    squashed = torch.tanh(weight)
    part = squashed / (2 * squashed.detach().abs().max().clamp(min=SCALE_FLOOR)) + 0.5
    levels = (1 << bits) - 1
    return 2 * _rounded_straight_through(part * levels) / levels - 1


def dorefa_activation(value: Tensor, bits: int) -> Tensor:
    """Return activations of 2^bits levels in [0, 1]; no gradient passes outside of that range.

    Args:
        value: any shape.
        bits: from 1 to 32.

    Source: Zhou et al., DoReFa-Net, 2016, equation 11.

    Examples:
        >>> dorefa_activation(torch.tensor([-1.0, 0.4, 2.0]), 2)
        tensor([0.0000, 0.3333, 1.0000])
    """
    levels = (1 << bits) - 1
    return _rounded_straight_through(value.clamp(0, 1) * levels) / levels


def dorefa_gradient(gradient: Tensor, bits: int, noise: Tensor) -> Tensor:
    """Add noise; round to 2^bits levels between plus and minus a sample's largest magnitude.

    Args:
        gradient: `(samples, ...)`; each sample has a range of its own.
        bits: from 1 to 32.
        noise: of the shape of `gradient`, uniform in [-0.5, 0.5], which makes the rounding
            unbiased.

    Source: Zhou et al., DoReFa-Net, 2016, equation 12.

    Examples:
        >>> dorefa_gradient(torch.tensor([[-1.0, 0.1, 1.0]]), 1, torch.zeros(1, 3))
        tensor([[-1.,  1.,  1.]])
    """
    levels = (1 << bits) - 1
    others = list(range(1, gradient.dim()))
    largest = gradient.abs().amax(others, keepdim=True) if others else gradient.abs()
    largest = largest.clamp(min=torch.finfo(gradient.dtype).tiny)
    part = gradient / (2 * largest) + 0.5 + noise / levels
    return 2 * largest * (torch.round(part.clamp(0, 1) * levels) / levels - 0.5)


def binarized(value: Tensor) -> Tensor:
    """Return the signs of values, +1 for 0; no gradient passes where |x| > 1.

    Args:
        value: any shape.

    Source: Courbariaux et al., Binarized Neural Networks, 2016, equation 4.

    Examples:
        >>> binarized(torch.tensor([-0.5, 0.0, 2.0]))
        tensor([-1.,  1.,  1.])
    """
    with torch.no_grad():
        sign = torch.where(value >= 0, 1.0, -1.0).to(value.dtype)
        inside = value.abs() <= 1
    passing = torch.where(inside, value, value.detach())
    return passing + (sign - value).detach()


def folded_batch_norm(
    weight: Tensor,
    bias: Tensor | None,
    mean: Tensor,
    variance: Tensor,
    gamma: Tensor,
    beta: Tensor,
    epsilon: float,
) -> tuple[Tensor, Tensor]:
    """Return weight and bias of a layer with the numbers of its batch norm folded in.

    Args:
        weight: `(channels, ...)`.
        bias: `(channels,)`; None for zeros.
        mean: running mean, `(channels,)`.
        variance: running variance, `(channels,)`.
        gamma: scale of the batch norm, `(channels,)`.
        beta: shift of the batch norm, `(channels,)`.
        epsilon: of the batch norm.

    Returns:
        Weight and bias, of their shapes.

    Source: Jacob et al., Quantization and Training of Neural Networks, 2018, section 3.2.
    """
    factor = gamma / torch.sqrt(variance + epsilon)
    shape = (-1, *(1,) * (weight.dim() - 1))
    centred = -mean if bias is None else bias - mean
    return weight * factor.reshape(shape), beta + centred * factor


def _rounded_straight_through(value: Tensor) -> Tensor:
    return value + (torch.round(value) - value).detach()


def _step_factor(value: Tensor, scale: Tensor, limits: IntegerRange) -> float:
    shared = max(value.numel() / scale.numel(), 1)  # an empty batch has no gradient to scale
    return 1 / math.sqrt(shared * limits.qmax)


def _with_gradient_factor(value: Tensor, factor: float) -> Tensor:
    """Return the value unchanged; its gradient is multiplied by a factor."""
    scaled = value * factor
    return scaled + (value - scaled).detach()
