"""The space of ProxylessNAS has stages of searched depth."""

import random

import pytest
import torch
from torch import nn

from nni.nas.hub.pytorch import ProxylessNAS


def test_dimensions() -> None:
    leaves = ProxylessNAS(width_mult=0.25).simplify()

    depths = [label for label in leaves if label.endswith("_depth")]
    assert depths == [f"proxylessnas/s{stage}_depth" for stage in range(2, 7)]
    assert len(leaves) == 5 + 5 * 4 + 1
    assert list(leaves["proxylessnas/s2_i0"].grid()) == [
        "k3e3",
        "k5e3",
        "k7e3",
        "k3e6",
        "k5e6",
        "k7e6",
    ]
    assert list(leaves["proxylessnas/s6_depth"].grid()) == [1, 2, 3, 4]


def test_chosen_depth_kernel_and_expansion_are_built() -> None:
    space = ProxylessNAS(5, width_mult=0.25)
    memo = {"proxylessnas/s2_depth": 3, "proxylessnas/s2_i2": "k7e6"}

    network = space.random(memo, random.Random(0))

    block = network.blocks[0][2]
    convolution = block.layers[3]
    assert len(network.blocks[0]) == 3
    assert convolution.kernel_size == (7, 7)
    assert convolution.in_channels == 8 * 6
    assert block.has_shortcut
    assert network(torch.zeros(2, 3, 32, 32)).shape == (2, 5)


def test_normalizations_have_the_given_arguments() -> None:
    network = ProxylessNAS(5, width_mult=0.25, bn_eps=0.5, bn_momentum=0.25).default()

    found = {
        (one.eps, one.momentum) for one in network.modules() if isinstance(one, nn.BatchNorm2d)
    }
    assert found == {(0.5, 0.25)}


def test_wrong_number_of_widths_is_refused() -> None:
    with pytest.raises(ValueError, match="base_widths must be 9 numbers"):
        ProxylessNAS(base_widths=(8, 8))


def test_published_architecture_is_in_a_file() -> None:
    with pytest.raises(FileNotFoundError, match=r"'proxyless-mobile' \(74.594 % on ImageNet\)"):
        ProxylessNAS.load_searched_model("proxyless-mobile")
