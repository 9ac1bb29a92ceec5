"""Space of NAS-Bench-101: `NasBench101`."""

from collections.abc import Callable
from typing import Final

from torch import Tensor, nn

from nni.mutable import Sample
from nni.nas.hub.pytorch.mobile_blocks import set_normalizations
from nni.nas.hub.pytorch.modules.nasbench101_cell import NasBench101Cell
from nni.nas.nn.pytorch import ModelSpace


def conv_bn_relu(in_channels: int, out_channels: int, kernel_size: int) -> nn.Sequential:
    """Return a convolution without bias, a batch normalization and ReLU in sequence.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        kernel_size: odd size of the kernel.

    Returns:
        A module that keeps height and width.
    """
    return nn.Sequential(
        nn.Conv2d(in_channels, out_channels, kernel_size, padding=kernel_size // 2, bias=False),
        nn.BatchNorm2d(out_channels),
        nn.ReLU(),
    )


def _conv3x3(features: int) -> nn.Module:
    return conv_bn_relu(features, features, 3)


def _conv1x1(features: int) -> nn.Module:
    return conv_bn_relu(features, features, 1)


def _maxpool3x3(features: int) -> nn.Module:
    del features
    return nn.MaxPool2d(3, stride=1, padding=1)


def _projection(in_channels: int, out_channels: int) -> nn.Module:
    return conv_bn_relu(in_channels, out_channels, 1)


OPERATORS: Final[dict[str, Callable[[int], nn.Module]]] = {
    "conv3x3-bn-relu": _conv3x3,
    "conv1x1-bn-relu": _conv1x1,
    "maxpool3x3": _maxpool3x3,
}
"""Operations of the benchmark by the names of its queries."""


class NasBench101(ModelSpace, label_prefix="nasbench101"):
    """Network of stacks of one searched cell, which NAS-Bench-101 has trained completely.

    All cells share the labels `nasbench101/cell/num_nodes`, `nasbench101/cell/op1`, …,
    `nasbench101/cell/input1`, …; samples also have the pruned architecture, as queries of
    `nni.nas.benchmark.nasbench101` take it, under `nasbench101/cell/final`. It computes nothing
    before it is frozen.

    Args:
        stem_out_channels: channels of the stem and of the first stack; each further stack has
            twice as many.
        num_stacks: number of stacks, with a pooling before each but the first.
        num_modules_per_stack: cells of each stack.
        max_num_vertices: largest number of vertices of the cell.
        max_num_edges: largest number of edges of the cell.
        num_labels: number of classes.
        bn_eps: epsilon of all normalizations.
        bn_momentum: weight of a new batch in the statistics of all normalizations.

    Source: Ying et al., NAS-Bench-101, 2019.

    Examples:
        >>> space = NasBench101(stem_out_channels=8, num_stacks=1, num_modules_per_stack=1)
        >>> space.default_sample()["nasbench101/cell/final"]
        {'input1': [0]}
    """

    def __init__(
        self,
        stem_out_channels: int = 128,
        num_stacks: int = 3,
        num_modules_per_stack: int = 3,
        max_num_vertices: int = 7,
        max_num_edges: int = 9,
        num_labels: int = 10,
        bn_eps: float = 1e-5,
        bn_momentum: float = 0.003,
    ) -> None:
        super().__init__()
        self.bn_eps, self.bn_momentum = bn_eps, bn_momentum
        channels = stem_out_channels
        self.features = nn.Sequential(conv_bn_relu(3, channels, 3))
        for stack in range(num_stacks):
            width = stem_out_channels * 2**stack
            if stack > 0:
                self.features.append(nn.MaxPool2d(2, ceil_mode=True))
            for _ in range(num_modules_per_stack):
                cell = NasBench101Cell(
                    OPERATORS,
                    channels,
                    width,
                    _projection,
                    max_num_vertices,
                    max_num_edges,
                    label="cell",
                )
                self.features.append(cell)
                channels = width
        self.pool = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(channels, num_labels)
        set_normalizations(self, bn_eps, bn_momentum)

    def freeze(self, sample: Sample) -> nn.Module:
        """Return the network of a sample, with the space's settings of batch normalization."""
        frozen: nn.Module = super().freeze(sample)
        set_normalizations(frozen, self.bn_eps, self.bn_momentum)
        return frozen

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits `(batch, num_labels)`; raise RuntimeError unless the space is frozen.

        Args:
            inputs: `(batch, 3, height, width)`.

        Returns:
            `(batch, num_labels)`.
        """
        output: Tensor = self.classifier(self.pool(self.features(inputs)))
        return output
