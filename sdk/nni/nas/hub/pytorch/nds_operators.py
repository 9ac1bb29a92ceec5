"""Operators of networks of normal and reduction cells, by the names that benchmarks use."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.nas.nn.pytorch import MutableBatchNorm2d, MutableConv2d

Channels = Any
"""Number of channels, or an expression of it."""
Operator = Callable[[Channels, int], nn.Module]
"""Function of the number of channels, which operators keep, and the stride, 1 or 2."""


class DropPath(nn.Module):
    """Module that zeroes an operator's output for random samples of a batch, in training.

    Args:
        drop_prob: probability for each sample, in `[0, 1)`.

    Raises:
        ValueError: `drop_prob` is outside its range.

    Source: Larsson et al., FractalNet, 2017, section 3.

    Examples:
        >>> DropPath(0.5).eval()(torch.ones(2, 3))
        tensor([[1., 1., 1.],
                [1., 1., 1.]])
    """

    def __init__(self, drop_prob: float = 0.0) -> None:
        super().__init__()
        if not 0 <= drop_prob < 1:
            raise ValueError(f"drop_prob must be in [0, 1), got {drop_prob}")
        self.drop_prob = drop_prob

    def forward(self, inputs: Tensor) -> Tensor:
        """In training, zero random samples and scale the others up; else return the input.

        Args:
            inputs: `(batch, *)`.

        Returns:
            Of the same shape.
        """
        if not self.training or self.drop_prob == 0:
            return inputs
        keep = 1 - self.drop_prob
        shape = (len(inputs), *[1] * (inputs.dim() - 1))
        return inputs * inputs.new_empty(shape).bernoulli_(keep) / keep


class FactorizedReduce(nn.Module):
    """ReLU, 1x1 convolution and batch norm; inputs above a given size are halved.

    Half of the channels see the even positions, the others the odd ones.

    Args:
        in_channels: channels of the input; number or expression.
        out_channels: channels of the output; number or expression.

    Source: Zoph et al., Learning Transferable Architectures, 2018, in its published code.
    Departures: one module serves inputs of both sizes, because which one a cell gets may be
    searched.

    Examples:
        >>> reduce = FactorizedReduce(3, 4)
        >>> reduce(torch.zeros(1, 3, 7, 7), 4).shape, reduce(torch.zeros(1, 3, 4, 4), 4).shape
        (torch.Size([1, 4, 4, 4]), torch.Size([1, 4, 4, 4]))
    """

    def __init__(self, in_channels: Channels, out_channels: Channels) -> None:
        super().__init__()
        self.conv = MutableConv2d(in_channels, out_channels, 1, bias=False)
        self.norm = MutableBatchNorm2d(out_channels)

    def forward(self, inputs: Tensor, size: int) -> Tensor:
        """Return the activated, projected, normalized input, halved until its height is `size`.

        Args:
            inputs: `(batch, in_channels, height, width)`.
            size: wanted height.

        Returns:
            `(batch, out_channels, size, *)`.
        """
        active = functional.relu(inputs)
        while active.shape[2] > 2 * size:  # two reductions in between
            active = active[:, :, ::2, ::2]
        output: Tensor
        if active.shape[2] <= size:
            output = self.norm(self.conv(active))
            return output
        shifted = functional.pad(active, (0, 1, 0, 1))[:, :, 1::2, 1::2]
        even, odd = self.conv(active[:, :, ::2, ::2]), self.conv(shifted)
        half = even.shape[1] // 2
        projected = torch.cat([even[:, :half], odd[:, half:]], 1)
        return self.norm(projected)  # type: ignore[no-any-return]  # of a module


class _SkipReduce(nn.Module):
    """Skip connection of stride 2: a projection that halves the size, rounded up."""

    def __init__(self, channels: Channels) -> None:
        super().__init__()
        self.reduce = FactorizedReduce(channels, channels)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.reduce(inputs, (inputs.shape[2] + 1) // 2)
        return output


def _skip_connect(channels: Channels, stride: int) -> nn.Module:
    return nn.Identity() if stride == 1 else _SkipReduce(channels)


def _pool(kind: str, size: int, channels: Channels, stride: int) -> nn.Module:
    padding = size // 2
    pool: nn.Module = (
        nn.MaxPool2d(size, stride, padding)
        if kind == "max"
        else nn.AvgPool2d(size, stride, padding, count_include_pad=False)
    )
    return nn.Sequential(pool, MutableBatchNorm2d(channels))


def _conv(
    channels: Channels,
    size: int | tuple[int, int],
    stride: int | tuple[int, int] = 1,
    *,
    depthwise: bool = False,
    dilation: int = 1,
) -> list[nn.Module]:
    sizes = (size, size) if isinstance(size, int) else size
    padding = tuple(dilation * (one // 2) for one in sizes)
    groups = channels if depthwise else 1
    return [
        MutableConv2d(
            channels, channels, sizes, stride, padding, dilation, groups=groups, bias=False
        )
    ]


def _plain_conv(size: int, channels: Channels, stride: int) -> nn.Module:
    return nn.Sequential(nn.ReLU(), *_conv(channels, size, stride), MutableBatchNorm2d(channels))


def _factorized_conv(size: int, channels: Channels, stride: int) -> nn.Module:
    return nn.Sequential(
        nn.ReLU(),
        *_conv(channels, (1, size), (1, stride)),
        *_conv(channels, (size, 1), (stride, 1)),
        MutableBatchNorm2d(channels),
    )


def _dilated_conv(size: int, channels: Channels, stride: int) -> nn.Module:
    return nn.Sequential(
        nn.ReLU(),
        *_conv(channels, size, stride, depthwise=True, dilation=2),
        *_conv(channels, 1),
        MutableBatchNorm2d(channels),
    )


def _separable_conv(size: int, channels: Channels, stride: int, *, dilation: int = 1) -> nn.Module:
    return nn.Sequential(
        *(
            layer
            for one in (stride, 1)
            for layer in (
                nn.ReLU(),
                *_conv(channels, size, one, depthwise=True, dilation=dilation),
                *_conv(channels, 1),
                MutableBatchNorm2d(channels),
            )
        )
    )


OPERATORS: Final[dict[str, Operator]] = {
    "skip_connect": _skip_connect,
    "avg_pool_3x3": partial(_pool, "avg", 3),
    "max_pool_3x3": partial(_pool, "max", 3),
    "max_pool_5x5": partial(_pool, "max", 5),
    "max_pool_7x7": partial(_pool, "max", 7),
    "conv_1x1": partial(_plain_conv, 1),
    "conv_3x3": partial(_plain_conv, 3),
    "conv_3x1_1x3": partial(_factorized_conv, 3),
    "conv_7x1_1x7": partial(_factorized_conv, 7),
    "dil_conv_3x3": partial(_dilated_conv, 3),
    "dil_conv_5x5": partial(_dilated_conv, 5),
    "sep_conv_3x3": partial(_separable_conv, 3),
    "sep_conv_5x5": partial(_separable_conv, 5),
    "sep_conv_7x7": partial(_separable_conv, 7),
    "dil_sep_conv_3x3": partial(_separable_conv, 3, dilation=2),
}
"""Operators by name; each keeps the number of channels."""
