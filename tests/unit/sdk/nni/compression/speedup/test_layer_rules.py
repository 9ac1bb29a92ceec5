"""Norms, pools, reductions and look-ups."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from nni.compression.speedup.groups import find_dependencies


class Between(nn.Module):
    """A convolution, an operation and a convolution."""

    def __init__(self, middle: Callable[[Tensor], Tensor], width: int = 8) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 8, 1)
        self.middle = middle
        self.last = nn.Conv2d(width, 2, 1)

    def forward(self, image: Tensor) -> Tensor:
        return self.last(self.middle(self.first(image)))


def free_units(middle: Callable[[Tensor], Tensor], width: int = 8) -> int:
    model = Between(middle, width).eval()
    return sum(
        len(group.units) for group in find_dependencies(model, torch.zeros(2, 3, 8, 8)).groups()
    )


@pytest.mark.parametrize(
    "middle",
    [
        functional.relu,
        functional.hardswish,
        functional.logsigmoid,
        nn.BatchNorm2d(8),
        nn.InstanceNorm2d(8, affine=True),
        nn.MaxPool2d(2),
        nn.AvgPool2d(3),
        nn.AdaptiveAvgPool2d(2),
        nn.AdaptiveMaxPool2d(2),
        nn.Upsample(scale_factor=2, mode="bilinear"),
        nn.Upsample(scale_factor=2),
        nn.ReflectionPad2d(1),
        nn.ZeroPad2d(1),
        nn.Dropout2d(),
        nn.PReLU(8),
        lambda image: image.mean((2, 3), keepdim=True),
        lambda image: image.amax((2, 3), keepdim=True) + image,
        lambda image: image.softmax(-1),
        lambda image: image.masked_fill(image > 0, 0.0),
        lambda image: torch.where(image > 0, image, -image),
        lambda image: image.roll(1, 2).flip(3),
        lambda image: image[:, :, [0, 1]],
    ],
)
def test_channels_pass_operations_within_them(middle: Callable[[Tensor], Tensor]) -> None:
    assert free_units(middle) == 8


@pytest.mark.parametrize(
    "middle",
    [
        nn.GroupNorm(2, 8),
        nn.GroupNorm(8, 8),
        nn.LayerNorm([8, 8, 8]),
        lambda image: image.softmax(1),
        lambda image: image.sort(1).values,
        lambda image: image - image.mean(1, keepdim=True),
        lambda image: functional.normalize(image, dim=1),
        lambda image: image[:, [1, 0, 2, 3, 4, 5, 6, 7]],
        nn.LocalResponseNorm(2),
    ],
)
def test_channels_that_are_mixed_are_frozen(middle: Callable[[Tensor], Tensor]) -> None:
    assert free_units(middle) == 0


def test_halves_of_a_gated_unit_go_together() -> None:
    assert free_units(lambda image: functional.glu(image, 1), width=4) == 4


def test_sums_over_rows_tie_them() -> None:
    assert free_units(lambda image: image.view(2, 2, 4, 8, 8).sum(1), width=4) == 4


def test_group_norm_keeps_its_groups_equal_on_request() -> None:
    model = Between(nn.GroupNorm(2, 8)).eval()

    dependencies = find_dependencies(model, torch.zeros(2, 3, 8, 8), allow_norm_change=True)

    assert [rows.shape for rows in dependencies.balances] == [(2, 4)]
    assert dependencies.changed_norms == ("middle",)
