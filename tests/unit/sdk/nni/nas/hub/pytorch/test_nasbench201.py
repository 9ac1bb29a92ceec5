"""The network of NAS-Bench-201 has three stages of one cell."""

import pytest
import torch
from torch import nn

from nni.nas.hub.pytorch import NasBench201
from nni.nas.hub.pytorch.modules import NasBench201Cell
from nni.nas.hub.pytorch.nasbench201 import OPERATORS, Zero, relu_conv_bn

PLACES = ("0_1", "0_2", "1_2", "0_3", "1_3", "2_3")


def sample_of(name: str) -> dict[str, str]:
    return {f"nasbench201/cell/{place}": name for place in PLACES}


def test_all_cells_share_their_labels() -> None:
    space = NasBench201(4, 2)

    assert list(space.simplify()) == [f"nasbench201/cell/{place}" for place in PLACES]
    assert sum(isinstance(one, NasBench201Cell) for one in space.modules()) == 6


def test_published_size_of_the_largest_network() -> None:
    frozen = NasBench201().freeze(sample_of("conv_3x3"))

    # As published for the architecture of 3x3 convolutions only: 1.531546 million.
    assert sum(one.numel() for one in frozen.parameters()) == 1_531_546


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("channels", [(4, 4), (4, 6)])
def test_operators_keep_the_size(name: str, channels: tuple[int, int]) -> None:
    output = OPERATORS[name](*channels)(torch.randn(2, 4, 7, 7))

    assert output.shape == (2, channels[1], 7, 7)


def test_zero_has_a_gradient_of_zero() -> None:
    inputs = torch.ones(1, 2, 3, 3, requires_grad=True)

    Zero(2, 2)(inputs).sum().backward()

    assert inputs.grad is not None
    assert not inputs.grad.any()


def test_network_of_zeros_still_has_a_shortcut() -> None:
    inputs = torch.randn(3, 3, 9, 9, generator=torch.Generator().manual_seed(0))

    assert NasBench201(4, 1).freeze(sample_of("none"))(inputs).shape == (3, 10)


def test_convolution_is_activated_before_and_normalized_after() -> None:
    layers = list(relu_conv_bn(2, 3, 5))

    assert [type(one) for one in layers] == [nn.ReLU, nn.Conv2d, nn.BatchNorm2d]
