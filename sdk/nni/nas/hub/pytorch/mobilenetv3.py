"""Space around MobileNetV3: `MobileNetV3Space`."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from torch import Tensor, nn

from nni.mutable import Categorical, MutableExpression
from nni.nas.hub.pytorch.mobile_blocks import (
    ChannelAttention,
    InvertedResidual,
    conv_bn,
    make_divisible,
    scaled_channels,
    set_normalizations,
)
from nni.nas.hub.pytorch.searched_models import SearchedModel, SpaceWithSearchedModels
from nni.nas.nn.pytorch import LayerChoice, MutableConv2d, MutableLinear, Repeat

STRIDES: Final = (1, 2, 2, 2, 1, 2)
MAX_DEPTH: Final = 4
_SMOOTH_FROM: Final = 3
"""First stage whose activation is the smooth one."""
_LARGE: Final[tuple[tuple[int, tuple[float, ...], bool], ...]] = (
    (3, (1,), False),
    (3, (4, 3), False),
    (5, (3, 3, 3), True),
    (3, (6, 2.5, 2.3, 2.3), False),
    (3, (6, 6), True),
    (5, (6, 6, 6), True),
)
"""Kernel, expansion ratio of each block, and attention, of the stages of MobileNetV3-large."""


class MobileNetV3Space(SpaceWithSearchedModels, label_prefix="mobilenetv3"):
    """Mobile network with searched widths, depths, kernels, expansion ratios and attention.

    Stage `k` has the labels `mobilenetv3/s{k}_width`, a factor of its channels, and, of more than
    one block, `mobilenetv3/s{k}_depth`; its block `n` has `s{k}_i{n}_kernel`, `s{k}_i{n}_exp` and
    `s{k}_i{n}_se`. Stem and head have a width, too.

    Args:
        num_labels: number of classes.
        base_widths: channels of stem, six stages, and the two layers of the head.
        width_multipliers: factors of these channels; one factor is not searched.
        expand_ratios: ratios to choose from.
        kernel_sizes: odd sizes to choose from.
        max_depth: largest number of blocks of each stage but the first.
        dropout_rate: before the classifier.
        bn_eps: epsilon of all normalizations.
        bn_momentum: weight of a new batch in the statistics of all normalizations.

    Raises:
        ValueError: `base_widths` are not nine numbers.

    Source: Howard et al., Searching for MobileNetV3, 2019, table 1.

    Examples:
        >>> import torch
        >>> space = MobileNetV3Space(num_labels=10, base_widths=(8,) * 9, max_depth=2)
        >>> list(space.simplify())[:2]
        ['mobilenetv3/stem_width', 'mobilenetv3/s0_width']
        >>> space(torch.zeros(2, 3, 32, 32)).shape
        torch.Size([2, 10])
    """

    def __init__(  # noqa: PLR0913 - what is searched
        self,
        num_labels: int = 1000,
        base_widths: tuple[int, ...] = (16, 16, 24, 40, 80, 112, 160, 960, 1280),
        width_multipliers: Sequence[float] = (0.5, 0.625, 0.75, 1.0, 1.25, 1.5, 2.0),
        expand_ratios: Sequence[float] = (1, 2, 3, 4, 5, 6),
        kernel_sizes: Sequence[int] = (3, 5, 7),
        max_depth: int = MAX_DEPTH,
        dropout_rate: float = 0.2,
        bn_eps: float = 1e-3,
        bn_momentum: float = 0.1,
    ) -> None:
        super().__init__()
        if len(base_widths) != len(STRIDES) + 3:
            raise ValueError(f"base_widths must be {len(STRIDES) + 3} numbers, got {base_widths}")
        names = ["stem", *(f"s{stage}" for stage in range(len(STRIDES))), "head"]
        widths = [
            self._width(name, base, width_multipliers)
            for name, base in zip(names, base_widths[:-1], strict=True)
        ]
        self.stem = nn.Sequential(
            *conv_bn(3, widths[0], 3, stride=2, activation=nn.Hardswish),
        )
        self.blocks = nn.Sequential()
        for stage, stride in enumerate(STRIDES):
            build = partial(
                _block,
                stage,
                (widths[stage], widths[stage + 1]),
                stride,
                list(expand_ratios),
                list(kernel_sizes),
            )
            if stage == 0 or max_depth == 1:
                self.blocks.append(build(0))
            else:
                self.blocks.append(Repeat(build, (1, max_depth), label=f"s{stage}_depth"))
        features = make_divisible(base_widths[-1])
        self.head = nn.Sequential(
            *conv_bn(widths[-2], widths[-1], 1, activation=nn.Hardswish),
            nn.AdaptiveAvgPool2d(1),
            MutableConv2d(widths[-1], features, 1),
            nn.Hardswish(),
            nn.Flatten(),
            nn.Dropout(dropout_rate),
            MutableLinear(features, num_labels),
        )
        self.bn_eps, self.bn_momentum = bn_eps, bn_momentum
        set_normalizations(self, bn_eps, bn_momentum)

    @classmethod
    def searched_models(cls) -> dict[str, SearchedModel]:
        """Return accuracies and, unless in files, samples of MobileNetV3 and Cream, by name."""
        accuracies = {
            "mobilenetv3-small-050": 57.906,
            "mobilenetv3-small-075": 65.24,
            "mobilenetv3-small-100": 67.652,
            "cream-014": 53.74,
            "cream-043": 66.256,
            "cream-114": 72.514,
            "cream-287": 77.52,
            "cream-481": 79.078,
            "cream-604": 79.92,
        }
        arguments = {
            "width_multipliers": (1.0,),
            "expand_ratios": (1, 2.3, 2.5, 3, 4, 6),
        }
        large = SearchedModel(75.768, "ImageNet", _large_sample(), arguments)
        others = {name: SearchedModel(value, "ImageNet") for name, value in accuracies.items()}
        return {"mobilenetv3-large-100": large, **others}

    def freeze(self, sample: dict[str, Any]) -> nn.Module:
        """Return the network of a sample, with the space's settings of batch normalization."""
        frozen: nn.Module = super().freeze(sample)
        if frozen is not self:
            set_normalizations(frozen, self.bn_eps, self.bn_momentum)
        return frozen

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits `(batch, num_labels)` of images `(batch, 3, height, width)`.

        Args:
            inputs: `(batch, 3, height, width)`.

        Returns:
            `(batch, num_labels)`.
        """
        output: Tensor = self.head(self.blocks(self.stem(inputs)))
        return output

    def _width(self, name: str, base: int, factors: Sequence[float]) -> int | MutableExpression:
        if len(factors) == 1:
            return make_divisible(base * factors[0])
        # The first one is the default; the published network is in the middle.
        default = 1.0 if 1.0 in factors else factors[0]
        factor = Categorical(factors, default=default, label=f"{name}_width")
        width: MutableExpression = scaled_channels(base, self.add_mutable(factor))
        return width


def _block(
    stage: int,
    widths: tuple[Any, Any],
    stride: int,
    expand_ratios: list[float],
    kernel_sizes: list[int],
    index: int,
) -> nn.Module:
    """Return one block of a stage with its choices; the first has the stride and new channels."""
    name = f"s{stage}_i{index}"
    activation = nn.Hardswish if stage >= _SMOOTH_FROM else nn.ReLU
    in_channels = widths[0] if index == 0 else widths[1]
    return InvertedResidual(
        in_channels,
        widths[1],
        Categorical(expand_ratios, label=f"{name}_exp"),
        Categorical(kernel_sizes, label=f"{name}_kernel"),
        stride=stride if index == 0 else 1,
        activation=activation,
        attention=partial(_attention, f"{name}_se"),
    )


def _attention(label: str, channels: Any) -> nn.Module:  # noqa: ANN401 - number or expression
    return LayerChoice({"se": ChannelAttention(channels), "none": nn.Identity()}, label=label)


def _large_sample() -> dict[str, Any]:
    sample: dict[str, Any] = {}
    for stage, (kernel, ratios, has_attention) in enumerate(_LARGE):
        if stage > 0:
            sample[f"mobilenetv3/s{stage}_depth"] = len(ratios)
        for index, ratio in enumerate(ratios):
            name = f"mobilenetv3/s{stage}_i{index}"
            sample[f"{name}_kernel"] = kernel
            sample[f"{name}_exp"] = ratio
            sample[f"{name}_se"] = "se" if has_attention else "none"
    return sample
