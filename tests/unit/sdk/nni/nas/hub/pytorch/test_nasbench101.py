"""The network of NAS-Bench-101 has stacks of one cell."""

import pytest
import torch
from torch import nn

from nni.nas.hub.pytorch import NasBench101
from nni.nas.hub.pytorch.nasbench101 import OPERATORS, conv_bn_relu

P = "nasbench101/cell/"
SAMPLE = {
    f"{P}num_nodes": 3,
    f"{P}op1": "conv3x3-bn-relu",
    f"{P}input1": [0],
    f"{P}input2": [0, 1],
}


def small() -> NasBench101:
    return NasBench101(8, 2, 1, max_num_vertices=3, num_labels=4, bn_eps=0.5, bn_momentum=0.25)


def test_normalizations_have_the_given_arguments() -> None:
    frozen = small().freeze(SAMPLE)

    found = {(one.eps, one.momentum) for one in frozen.modules() if isinstance(one, nn.BatchNorm2d)}
    assert found == {(0.5, 0.25)}


def test_stacks_double_the_channels() -> None:
    frozen = small().freeze(SAMPLE)

    assert frozen.classifier.in_features == 16
    assert frozen(torch.zeros(2, 3, 8, 8)).shape == (2, 4)


def test_labels_are_those_of_one_cell() -> None:
    assert list(NasBench101(8, 3, 3).simplify()) == [
        f"{P}num_nodes",
        *(f"{P}op{at}" for at in range(1, 6)),
        *(f"{P}input{at}" for at in range(1, 7)),
        f"{P}final",
    ]


def test_published_size_of_a_network() -> None:
    # The cell that only passes its input on is a projection in every one of the nine cells.
    frozen = NasBench101().freeze(
        {
            **{f"{P}op{at}": "maxpool3x3" for at in range(1, 6)},
            **{f"{P}input{at}": [0] for at in range(1, 7)},
            f"{P}num_nodes": 2,
        }
    )
    widths = [(128, 128)] * 3 + [(128, 256)] + [(256, 256)] * 2 + [(256, 512)] + [(512, 512)] * 2

    # Convolution and two numbers of the normalization for each channel.
    expected = sum(one * other + 2 * other for one, other in widths)
    expected += 3 * 128 * 9 + 2 * 128 + 512 * 10 + 10
    assert sum(one.numel() for one in frozen.parameters()) == expected


@pytest.mark.parametrize("name", OPERATORS)
def test_operations_keep_the_shape(name: str) -> None:
    assert OPERATORS[name](4)(torch.zeros(2, 4, 5, 5)).shape == (2, 4, 5, 5)


def test_convolution_is_normalized_and_activated() -> None:
    assert [type(one) for one in conv_bn_relu(1, 2, 3)] == [nn.Conv2d, nn.BatchNorm2d, nn.ReLU]
