"""Space of single-path one-shot search: `ShuffleNetSpace`."""

from typing import Any, Final

import torch
from torch import Tensor, nn

from nni.mutable import MutableExpression
from nni.mutable import shortcuts as values
from nni.nas.hub.pytorch.searched_models import SearchedModel, SpaceWithSearchedModels
from nni.nas.nn.pytorch import LayerChoice, MutableBatchNorm2d, MutableConv2d

REPEATS: Final = (4, 4, 8, 4)
CHANNELS: Final = (64, 160, 320, 640)
STEM_CHANNELS: Final = 16
HEAD_CHANNELS: Final = 1024
FACTORS: Final = (0.2, 0.4, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0)
"""Sizes of the middle channels relative to half of the output, if they are searched."""
_SPOS: Final = (2, 1, 0, 1, 2, 0, 2, 0, 2, 0, 2, 3, 0, 0, 0, 0, 3, 2, 3, 3)
"""Published architecture of SPOS: position of the operator of each layer."""


class ShuffleBlock(nn.Module):
    """Block of ShuffleNet v2 in which one half of the channels is transformed.

    Args:
        in_channels: channels of the input.
        out_channels: channels of the output.
        mid_channels: channels inside the branch; a number or an expression.
        kernel_sizes: sizes of the depthwise convolutions: one, or three of the Xception block.
        stride: 1, or 2, which transforms the other half, too.
        affine: whether normalizations have parameters.

    Examples:
        >>> ShuffleBlock(8, 16, 8, (3,), stride=2)(torch.zeros(1, 8, 6, 6)).shape
        torch.Size([1, 16, 3, 3])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        mid_channels: int | MutableExpression,
        kernel_sizes: tuple[int, ...],
        stride: int = 1,
        *,
        affine: bool = True,
    ) -> None:
        super().__init__()
        self.stride = stride
        branch_in = in_channels if stride > 1 else in_channels // 2
        branch_out = out_channels - (in_channels if stride > 1 else in_channels // 2)
        self.branch = nn.Sequential(
            *_branch(branch_in, branch_out, mid_channels, kernel_sizes, stride, affine=affine)
        )
        self.shortcut = nn.Sequential()
        if stride > 1:
            size = kernel_sizes[0]
            self.shortcut = nn.Sequential(
                *_depthwise(in_channels, size, stride, affine=affine),
                *_pointwise(in_channels, in_channels, affine=affine),
            )

    def forward(self, inputs: Tensor) -> Tensor:
        """Return both halves concatenated: one kept, or reduced by stride, one transformed.

        Args:
            inputs: `(batch, in_channels, height, width)`.

        Returns:
            `(batch, out_channels, height / stride, width / stride)`.
        """
        if self.stride > 1:
            return torch.cat([self.shortcut(inputs), self.branch(inputs)], 1)
        kept, transformed = inputs[:, ::2], inputs[:, 1::2]  # channels of both halves alternate
        return torch.cat([kept, self.branch(transformed)], 1)


class ShuffleNetSpace(SpaceWithSearchedModels, label_prefix="shufflenet"):
    """Space of twenty blocks of ShuffleNet v2, each with one of four operators.

    The labels are `shufflenet/layer_1` to `shufflenet/layer_20`, with the values `k3`, `k5`, `k7`
    and `xcep`; with `channel_search` also `shufflenet/channel_1`, ….

    Args:
        num_labels: number of classes.
        channel_search: whether the channels inside blocks are searched.
        affine: whether normalizations have parameters; shared weights are trained without.
        width_mult: factor of all channels.

    Source: Guo et al., Single Path One-Shot Neural Architecture Search, 2020, section 4.

    Examples:
        >>> space = ShuffleNetSpace(width_mult=0.25)
        >>> len(space.simplify()), space(torch.zeros(2, 3, 32, 32)).shape
        (20, torch.Size([2, 1000]))
    """

    def __init__(
        self,
        num_labels: int = 1000,
        *,
        channel_search: bool = False,
        affine: bool = True,
        width_mult: float = 1.0,
    ) -> None:
        super().__init__()
        stem, head, *widths = (
            max(4, int(one * width_mult) // 4 * 4)
            for one in (STEM_CHANNELS, HEAD_CHANNELS, *CHANNELS)
        )
        self.stem = nn.Sequential(
            nn.Conv2d(3, stem, 3, stride=2, padding=1, bias=False),
            nn.BatchNorm2d(stem, affine=affine),
            nn.ReLU(inplace=True),
        )
        self.features = nn.Sequential()
        channels = stem
        for width, repeats in zip(widths, REPEATS, strict=True):
            for at in range(repeats):
                number = len(self.features) + 1
                mid: Any = width // 2
                if channel_search:
                    factor = self.add_mutable(values.choice(f"channel_{number}", FACTORS))
                    mid = MutableExpression.to_int(factor * mid)
                self.features.append(
                    _choice(number, channels, width, mid, 2 if at == 0 else 1, affine=affine)
                )
                channels = width
        self.head = nn.Sequential(
            nn.Conv2d(channels, head, 1, bias=False),
            nn.BatchNorm2d(head, affine=affine),
            nn.ReLU(inplace=True),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Dropout(0.1),
            nn.Linear(head, num_labels, bias=False),
        )

    @classmethod
    def searched_models(cls) -> dict[str, SearchedModel]:
        """Return the network of SPOS, with sample and accuracy, by its name."""
        names = ("k3", "k5", "k7", "xcep")
        sample = {
            f"shufflenet/layer_{number}": names[at] for number, at in enumerate(_SPOS, start=1)
        }
        return {"spos": SearchedModel(74.14, "ImageNet", sample)}

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits `(batch, num_labels)` of images `(batch, 3, height, width)`.

        Args:
            inputs: `(batch, 3, height, width)`.

        Returns:
            `(batch, num_labels)`.
        """
        output: Tensor = self.head(self.features(self.stem(inputs)))
        return output


def _choice(
    number: int,
    in_channels: int,
    out_channels: int,
    mid_channels: int | MutableExpression,
    stride: int,
    *,
    affine: bool,
) -> LayerChoice:
    sizes = {"k3": (3,), "k5": (5,), "k7": (7,), "xcep": (3, 3, 3)}
    return LayerChoice(
        {
            name: ShuffleBlock(
                in_channels, out_channels, mid_channels, kernel_sizes, stride, affine=affine
            )
            for name, kernel_sizes in sizes.items()
        },
        label=f"layer_{number}",
    )


def _branch(
    in_channels: int,
    out_channels: int,
    mid_channels: int | MutableExpression,
    kernel_sizes: tuple[int, ...],
    stride: int,
    *,
    affine: bool,
) -> list[nn.Module]:
    if len(kernel_sizes) == 1:
        return [
            *_pointwise(in_channels, mid_channels, affine=affine),
            *_depthwise(mid_channels, kernel_sizes[0], stride, affine=affine),
            *_pointwise(mid_channels, out_channels, affine=affine),
        ]
    layers: list[nn.Module] = []
    last = len(kernel_sizes) - 1
    for at, kernel_size in enumerate(kernel_sizes):
        wide = in_channels if at == 0 else mid_channels
        layers += _depthwise(wide, kernel_size, stride if at == 0 else 1, affine=affine)
        layers += _pointwise(wide, out_channels if at == last else mid_channels, affine=affine)
    return layers


def _pointwise(in_channels: Any, out_channels: Any, *, affine: bool) -> list[nn.Module]:  # noqa: ANN401 - or mutable
    return [
        MutableConv2d(in_channels, out_channels, 1, bias=False),
        MutableBatchNorm2d(out_channels, affine=affine),
        nn.ReLU(inplace=True),
    ]


def _depthwise(channels: Any, kernel_size: int, stride: int, *, affine: bool) -> list[nn.Module]:  # noqa: ANN401 - or mutable
    padding = kernel_size // 2
    return [
        MutableConv2d(
            channels, channels, kernel_size, stride, padding, groups=channels, bias=False
        ),
        MutableBatchNorm2d(channels, affine=affine),
    ]
