"""Blocks of mobile networks take numbers and mutables."""

import pytest
import torch
from torch import nn

from nni.mutable import Categorical
from nni.nas.hub.pytorch.mobile_blocks import (
    ChannelAttention,
    InvertedResidual,
    conv_bn,
    is_same_number,
    make_divisible,
    scaled_channels,
    set_normalizations,
)
from nni.nas.nn.pytorch import recursive_freeze

WIDTH = Categorical([8, 16], label="width")


@pytest.mark.parametrize(
    ("channels", "expected"), [(1, 8), (8, 8), (11, 16), (12, 16), (30, 32), (35, 32), (100, 104)]
)
def test_channels_are_multiples(channels: float, expected: int) -> None:
    assert make_divisible(channels) == expected
    assert make_divisible(channels) >= 0.9 * channels


def test_scaled_channels_of_a_mutable() -> None:
    assert scaled_channels(16, 2.3) == 40
    assert scaled_channels(WIDTH, 2).freeze({"width": 16}) == 32
    assert repr(scaled_channels(WIDTH, 2)) == "divisible(width * 2)"


def test_block_of_mutables_is_frozen() -> None:
    kernel = Categorical([3, 5], label="kernel")
    ratio = Categorical([1, 4], label="ratio")
    block = InvertedResidual(WIDTH, WIDTH, ratio, kernel, attention=ChannelAttention)

    frozen, _ = recursive_freeze(block, {"width": 16, "kernel": 5, "ratio": 4})

    convs = [one for one in frozen.modules() if isinstance(one, nn.Conv2d)]
    assert [one.out_channels for one in convs] == [64, 64, 16, 64, 16]
    assert convs[1].kernel_size == (5, 5)
    assert convs[1].groups == 64
    assert frozen(torch.zeros(2, 16, 4, 4)).shape == (2, 16, 4, 4)


def test_shortcut_where_shapes_agree() -> None:
    other = Categorical([8, 16], label="other")

    assert InvertedResidual(8, 8, 3).has_shortcut
    assert InvertedResidual(WIDTH, WIDTH, 3).has_shortcut
    assert not InvertedResidual(8, 16, 3).has_shortcut
    assert not InvertedResidual(8, 8, 3, stride=2).has_shortcut
    assert not InvertedResidual(WIDTH, other, 3).has_shortcut


def test_shortcut_adds_the_input() -> None:
    block = InvertedResidual(8, 8, 1).eval()
    nn.init.zeros_(block.get_parameter("layers.4.weight"))
    x = torch.randn(1, 8, 3, 3, generator=torch.Generator().manual_seed(0))

    assert torch.equal(block(x), x)


def test_ratio_of_one_leaves_the_first_convolution_out() -> None:
    def convolutions(ratio: int) -> int:
        block = InvertedResidual(8, 8, ratio)
        return sum(isinstance(one, nn.Conv2d) for one in block.modules())

    assert (convolutions(1), convolutions(2)) == (2, 3)


def test_attention_scales_channels() -> None:
    x = torch.ones(1, 8, 2, 2)
    attention = ChannelAttention(8)

    scaled = attention(x)

    assert torch.equal(scaled.amax((2, 3)), scaled.amin((2, 3)))
    assert bool(((scaled >= 0) & (scaled <= 1)).all())


def test_same_number_in_every_sample() -> None:
    assert is_same_number(3, 3)
    assert not is_same_number(3, 4)
    assert not is_same_number(3, WIDTH)
    assert not is_same_number(WIDTH, 3)
    assert is_same_number(WIDTH * 2, WIDTH * 2)


def test_convolution_without_activation() -> None:
    assert len(conv_bn(3, 4, 3)) == 2
    assert len(conv_bn(3, 4, 3, activation=nn.ReLU)) == 3


def test_normalizations_are_set() -> None:
    network = nn.Sequential(nn.BatchNorm2d(2), nn.Sequential(nn.BatchNorm2d(2)))

    set_normalizations(network, 0.5, 0.25)

    assert {(one.eps, one.momentum) for one in network.modules() if hasattr(one, "eps")} == {
        (0.5, 0.25)
    }
