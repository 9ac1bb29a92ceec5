"""Space of ProxylessNAS: `ProxylessNAS`."""

from functools import partial
from typing import Final

from torch import Tensor, nn

from nni.nas.hub.pytorch.mobile_blocks import (
    InvertedResidual,
    conv_bn,
    make_divisible,
    set_normalizations,
)
from nni.nas.hub.pytorch.searched_models import SearchedModel, SpaceWithSearchedModels
from nni.nas.nn.pytorch import LayerChoice, Repeat

OPERATORS: Final = {
    f"k{kernel}e{expansion}": (kernel, expansion) for expansion in (3, 6) for kernel in (3, 5, 7)
}
"""Name to size of the kernel and expansion ratio."""
STRIDES: Final = (2, 2, 2, 1, 2)
"""Strides of the five stages whose depth is searched."""
MAX_DEPTH: Final = 4


class ProxylessNAS(SpaceWithSearchedModels, label_prefix="proxylessnas"):
    """Mobile network of five stages of searched depth, each block with one of six operators.

    The labels are `proxylessnas/s2_depth` to `proxylessnas/s6_depth`, with the values 1 to 4, and
    `proxylessnas/s2_i0`, …: kernel and expansion of each block, such as `k3e6`. The last stage,
    `s7`, is one block.

    Args:
        num_labels: number of classes.
        base_widths: channels of stem, first block, the six stages and head.
        dropout_rate: before the classifier.
        width_mult: factor of the channels.
        bn_eps: epsilon of all normalizations.
        bn_momentum: weight of a new batch in the statistics of all normalizations.

    Raises:
        ValueError: `base_widths` are not nine numbers.

    Source: Cai, Zhu and Han, ProxylessNAS, 2019, section 4.

    Examples:
        >>> import torch
        >>> space = ProxylessNAS(num_labels=10, width_mult=0.25)
        >>> len(space.simplify()), space(torch.zeros(2, 3, 32, 32)).shape
        (26, torch.Size([2, 10]))
    """

    def __init__(
        self,
        num_labels: int = 1000,
        base_widths: tuple[int, ...] = (32, 16, 24, 40, 80, 96, 192, 320, 1280),
        dropout_rate: float = 0.0,
        width_mult: float = 1.0,
        bn_eps: float = 1e-3,
        bn_momentum: float = 0.1,
    ) -> None:
        super().__init__()
        if len(base_widths) != len(STRIDES) + 4:
            raise ValueError(f"base_widths must be {len(STRIDES) + 4} numbers, got {base_widths}")
        widths = [make_divisible(width * width_mult) for width in base_widths]
        self.stem = nn.Sequential(
            *conv_bn(3, widths[0], 3, stride=2, activation=nn.ReLU6),
            InvertedResidual(widths[0], widths[1], 1),
        )
        self.blocks = nn.Sequential()
        for stage, stride in enumerate(STRIDES, start=2):
            build = partial(_block, stage, widths[stage - 1], widths[stage], stride)
            self.blocks.append(Repeat(build, (1, MAX_DEPTH), label=f"s{stage}_depth"))
        self.blocks.append(_block(7, widths[-3], widths[-2], 1, 0))
        self.head = nn.Sequential(
            *conv_bn(widths[-2], widths[-1], 1, activation=nn.ReLU6),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(dropout_rate),
            nn.Linear(widths[-1], num_labels),
        )
        set_normalizations(self, bn_eps, bn_momentum)

    @classmethod
    def searched_models(cls) -> dict[str, SearchedModel]:
        """Return accuracies of ProxylessNAS and AceNAS networks by name; samples are in files."""
        accuracies = {
            "acenas-m1": 75.176,
            "acenas-m2": 75.0,
            "acenas-m3": 75.118,
            "proxyless-cpu": 75.29,
            "proxyless-gpu": 75.084,
            "proxyless-mobile": 74.594,
        }
        return {name: SearchedModel(value, "ImageNet") for name, value in accuracies.items()}

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits `(batch, num_labels)` of images `(batch, 3, height, width)`.

        Args:
            inputs: `(batch, 3, height, width)`.

        Returns:
            `(batch, num_labels)`.
        """
        output: Tensor = self.head(self.blocks(self.stem(inputs)))
        return output


def _block(stage: int, in_channels: int, out_channels: int, stride: int, index: int) -> nn.Module:
    """Return one block of a stage as a choice; the first one has the stride and new channels."""
    return LayerChoice(
        {
            name: InvertedResidual(
                in_channels if index == 0 else out_channels,
                out_channels,
                expansion,
                kernel,
                stride=stride if index == 0 else 1,
            )
            for name, (kernel, expansion) in OPERATORS.items()
        },
        label=f"s{stage}_i{index}",
    )
