"""Space of NAS-Bench-201: `NasBench201`."""

from collections.abc import Callable
from typing import Final

from torch import Tensor, nn
from torch.nn import functional

from nni.nas.hub.pytorch.modules.nasbench201_cell import NasBench201Cell
from nni.nas.nn.pytorch import ModelSpace


class Zero(nn.Module):
    """Operator without output: zeros in the shape that a convolution would have.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        stride: stride of the convolution in its place.

    Examples:
        >>> import torch
        >>> Zero(3, 6, stride=2)(torch.ones(1, 3, 5, 5)).shape
        torch.Size([1, 6, 3, 3])
    """

    def __init__(self, in_channels: int, out_channels: int, stride: int = 1) -> None:
        super().__init__()
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.stride = stride

    def forward(self, inputs: Tensor) -> Tensor:
        """Return zeros with the channels of the output and the strided size.

        Args:
            inputs: `(batch, in_channels, height, width)`.

        Returns:
            `(batch, out_channels, ceil(height / stride), ceil(width / stride))`.
        """
        strided = inputs[:, :, :: self.stride, :: self.stride]
        if self.in_channels != self.out_channels:
            return strided.new_zeros((len(inputs), self.out_channels, *strided.shape[2:]))
        return strided * 0.0  # part of the graph, so that the gradient is there and zero


def relu_conv_bn(in_channels: int, out_channels: int, kernel_size: int) -> nn.Sequential:
    """Return ReLU, a convolution without bias, and a batch normalization in sequence.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: odd size of the kernel.

    Returns:
        A module that keeps height and width.
    """
    return nn.Sequential(
        nn.ReLU(),
        nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias=False),
        nn.BatchNorm2d(out_channels),
    )


def _skip_connect(in_channels: int, out_channels: int) -> nn.Module:
    if in_channels == out_channels:
        return nn.Identity()
    return relu_conv_bn(in_channels, out_channels, 1)


def _conv_1x1(in_channels: int, out_channels: int) -> nn.Module:
    return relu_conv_bn(in_channels, out_channels, 1)


def _conv_3x3(in_channels: int, out_channels: int) -> nn.Module:
    return relu_conv_bn(in_channels, out_channels, 3)


def _avg_pool_3x3(in_channels: int, out_channels: int) -> nn.Module:
    pool = nn.AvgPool2d(3, stride=1, padding=1, count_include_pad=False)
    if in_channels == out_channels:
        return pool
    return nn.Sequential(relu_conv_bn(in_channels, out_channels, 1), pool)


OPERATORS: Final[dict[str, Callable[[int, int], nn.Module]]] = {
    "none": Zero,
    "skip_connect": _skip_connect,
    "conv_1x1": _conv_1x1,
    "conv_3x3": _conv_3x3,
    "avg_pool_3x3": _avg_pool_3x3,
}
"""Operators of the benchmark by the names of its queries."""


class _ReductionBlock(nn.Module):
    """Residual block that halves height and width."""

    def __init__(self, in_channels: int, out_channels: int) -> None:
        super().__init__()
        self.convolutions = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(in_channels, out_channels, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(out_channels),
            relu_conv_bn(out_channels, out_channels, 3),
        )
        self.shortcut = nn.Conv2d(in_channels, out_channels, 1, bias=False)

    def forward(self, inputs: Tensor) -> Tensor:
        # An average pool with partial windows at the border takes odd sizes, too.
        pooled = functional.avg_pool2d(inputs, 2, ceil_mode=True)
        output: Tensor = self.convolutions(inputs) + self.shortcut(pooled)
        return output


class NasBench201(ModelSpace, label_prefix="nasbench201"):
    """Network of three stages of one searched cell, which NAS-Bench-201 has trained completely.

    All cells share the labels `nasbench201/cell/j_i`: 5 operators on 6 connections, 15,625
    architectures. The values are names of the queries of `nni.nas.benchmark.nasbench201`.

    Args:
        stem_out_channels: channels of the first stage; each further one has twice as many.
        num_modules_per_stack: cells of each stage.
        num_labels: number of classes.

    Source: Dong and Yang, NAS-Bench-201, 2020.

    Examples:
        >>> import torch
        >>> space = NasBench201(stem_out_channels=4, num_modules_per_stack=1)
        >>> list(space.simplify())[:2]
        ['nasbench201/cell/0_1', 'nasbench201/cell/0_2']
        >>> space(torch.zeros(2, 3, 16, 16)).shape
        torch.Size([2, 10])
    """

    def __init__(
        self, stem_out_channels: int = 16, num_modules_per_stack: int = 5, num_labels: int = 10
    ) -> None:
        super().__init__()
        channels = [stem_out_channels * factor for factor in (1, 2, 4)]
        self.stem = nn.Sequential(
            nn.Conv2d(3, channels[0], 3, padding=1, bias=False), nn.BatchNorm2d(channels[0])
        )
        self.blocks = nn.Sequential()
        for stage, width in enumerate(channels):
            if stage > 0:
                self.blocks.append(_ReductionBlock(channels[stage - 1], width))
            for _ in range(num_modules_per_stack):
                self.blocks.append(NasBench201Cell(OPERATORS, width, width, label="cell"))
        self.head = nn.Sequential(
            nn.BatchNorm2d(channels[-1]),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(channels[-1], num_labels),
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits `(batch, num_labels)` of images `(batch, 3, height, width)`.

        Args:
            inputs: `(batch, 3, height, width)`.

        Returns:
            `(batch, num_labels)`.
        """
        output: Tensor = self.head(self.blocks(self.stem(inputs)))
        return output
