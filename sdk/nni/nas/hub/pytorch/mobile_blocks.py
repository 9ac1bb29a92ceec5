"""Blocks of mobile networks, whose sizes may be mutables: inverted residuals and their parts."""

from collections.abc import Callable
from typing import Any, Final

from torch import Tensor, nn

from nni.mutable import MutableExpression
from nni.mutable.expression import apply
from nni.nas.nn.pytorch import MutableBatchNorm2d, MutableConv2d

Number = int | float | MutableExpression
"""Number, or an expression of one."""
Activation = Callable[[], nn.Module]

_KEPT: Final = 0.9
"""Rounding may take away at most a tenth of the channels."""


def make_divisible(channels: float, divisor: int = 8) -> int:
    """Return the multiple of `divisor` nearest to a number of channels, at least 90 % of it.

    Args:
        channels: wanted number.
        divisor: the result is a multiple of it.

    Returns:
        At least `divisor`, and at least nine tenths of the wanted number.

    Source: Sandler et al., MobileNetV2, 2018, in its published code.

    Examples:
        >>> make_divisible(30), make_divisible(11), make_divisible(1)
        (32, 16, 8)
    """
    rounded = max(divisor, int(channels + divisor / 2) // divisor * divisor)
    return rounded if rounded >= _KEPT * channels else rounded + divisor


def scaled_channels(channels: Number, factor: Number) -> Any:  # noqa: ANN401 - int, or an expression of one
    """Return a number of channels times a factor, as a multiple of 8.

    Args:
        channels: number, or expression.
        factor: number, or expression.

    Returns:
        An integer; an expression if an argument is one.
    """
    return apply(_scaled, [channels, factor], "divisible({} * {})")


def _scaled(channels: float, factor: float) -> int:
    return make_divisible(channels * factor)


class ChannelAttention(nn.Module):
    """Squeeze-and-excitation: channels are scaled by a function of their means.

    Args:
        channels: channels of the input; a number or an expression.
        reduction: divisor of the channels inside.

    Source: Hu et al., Squeeze-and-Excitation Networks, 2018; the gate is the piecewise linear one
    of MobileNetV3.

    Examples:
        >>> import torch
        >>> ChannelAttention(8)(torch.zeros(1, 8, 4, 4)).shape
        torch.Size([1, 8, 4, 4])
    """

    def __init__(self, channels: Number, reduction: int = 4) -> None:
        super().__init__()
        inner = scaled_channels(channels, 1 / reduction)
        whole: Any = channels
        self.gate = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            MutableConv2d(whole, inner, 1),
            nn.ReLU(inplace=True),
            MutableConv2d(inner, whole, 1),
            nn.Hardsigmoid(inplace=True),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the input, each channel scaled by a gate in [0, 1] of all channels' means.

        Args:
            inputs: `(batch, channels, height, width)`.

        Returns:
            Of the same shape.
        """
        output: Tensor = inputs * self.gate(inputs)
        return output


class InvertedResidual(nn.Module):
    """Block that widens, convolves each channel and narrows; with a shortcut where shapes agree.

    Args:
        in_channels: channels of the input; this and the next three: number or expression.
        out_channels: channels of the output.
        expand_ratio: factor of the channels inside; 1 leaves the first convolution out.
        kernel_size: odd size of the depthwise convolution.
        stride: its stride.
        activation: function that returns the activation.
        attention: function from the channels inside to a module before the last convolution.

    Source: Sandler et al., MobileNetV2, 2018, section 3.

    Examples:
        >>> import torch
        >>> block = InvertedResidual(8, 16, 3, 5, stride=2)
        >>> block(torch.zeros(2, 8, 6, 6)).shape, block.has_shortcut
        (torch.Size([2, 16, 3, 3]), False)
    """

    def __init__(
        self,
        in_channels: Number,
        out_channels: Number,
        expand_ratio: Number,
        kernel_size: Number = 3,
        *,
        stride: int = 1,
        activation: Activation = nn.ReLU6,
        attention: Callable[[Any], nn.Module] | None = None,
    ) -> None:
        super().__init__()
        expands = isinstance(expand_ratio, MutableExpression) or expand_ratio != 1
        inner = scaled_channels(in_channels, expand_ratio) if expands else in_channels
        layers = conv_bn(in_channels, inner, 1, activation=activation) if expands else []
        layers += conv_bn(
            inner, inner, kernel_size, stride=stride, groups=inner, activation=activation
        )
        if attention is not None:
            layers.append(attention(inner))
        layers += conv_bn(inner, out_channels, 1)
        self.layers = nn.Sequential(*layers)
        self.has_shortcut = stride == 1 and is_same_number(in_channels, out_channels)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the block's output, plus the input if the stride is 1 and the channels agree.

        Args:
            inputs: `(batch, in_channels, height, width)`.

        Returns:
            `(batch, out_channels, height / stride, width / stride)`.
        """
        output: Tensor = self.layers(inputs)
        return inputs + output if self.has_shortcut else output


def is_same_number(one: Number, other: Number) -> bool:
    """Return whether two numbers or expressions are equal in every sample.

    Args:
        one: number or expression.
        other: number or expression.

    Returns:
        True if they are equal, or the same expression.
    """
    if isinstance(one, MutableExpression):
        return one.equals(other)
    return not isinstance(other, MutableExpression) and one == other


def conv_bn(
    in_channels: Number,
    out_channels: Number,
    kernel_size: Number,
    *,
    stride: int = 1,
    groups: Number = 1,
    activation: Activation | None = None,
) -> list[nn.Module]:
    """Return a list of a convolution, its batch normalization, and an activation if one is given.

    Args:
        in_channels: channels of the input; number or expression.
        out_channels: channels of the output; number or expression.
        kernel_size: odd size; number or expression.
        stride: stride of the convolution.
        groups: groups of channels; number or expression.
        activation: function that returns the activation; `None`: none.

    Returns:
        Two or three modules.
    """
    sizes: list[Any] = [in_channels, out_channels, kernel_size]
    padding: Any = kernel_size // 2
    divided: Any = groups
    layers: list[nn.Module] = [
        MutableConv2d(*sizes, stride, padding, groups=divided, bias=False),
        MutableBatchNorm2d(sizes[1]),
    ]
    return layers if activation is None else [*layers, activation()]


def set_normalizations(network: nn.Module, eps: float, momentum: float) -> None:
    """Set epsilon and momentum of all 2-d batch normalizations of a network, in place.

    Args:
        network: changed in place.
        eps: added to variances.
        momentum: weight of a new batch in the statistics.
    """
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            module.eps, module.momentum = eps, momentum
