"""Layers with mutable arguments in a supernet."""

from typing import Any

import pytest
import torch
from torch import nn

import nni
from nni.nas.nn.pytorch import ModelSpace, MutableConv2d, MutableLeakyReLU, MutableLinear
from nni.nas.oneshot.pytorch.mixed_layer import MixingLayer, PathMixedLayer
from nni.nas.oneshot.pytorch.slicing_registry import slicing_of
from tests.unit.sdk.nni.nas.oneshot.pytorch.supernets import as_mixture, as_path


class Convolution(ModelSpace):
    def __init__(self) -> None:
        super().__init__()
        size = nni.choice("size", [1, 3])
        self.layer = MutableConv2d(2, nni.choice("width", [2, 4]), size, padding=size // 2)

    def forward(self, inputs: Any) -> Any:
        return self.layer(inputs)


def test_sampled_size_computes_what_the_frozen_layer_computes() -> None:
    space = Convolution()
    path = as_path(space)
    inputs = torch.randn(1, 2, 4, 4)
    assert isinstance(space.layer, PathMixedLayer)

    for sample in space.grid_samples():
        path.sample = sample
        torch.testing.assert_close(space(inputs), space.freeze(sample)(inputs))


def test_mixture_is_the_expectation_over_all_samples() -> None:
    space = Convolution()
    weights = as_mixture(space)
    inputs = torch.randn(1, 2, 4, 4)
    chances = torch.outer(*(weights.weights(label) for label in space.simplify())).flatten()
    layer = space.layer
    assert isinstance(layer, MixingLayer)

    expected = torch.zeros(1, 4, 4, 4)
    for chance, sample in zip(chances, space.grid_samples(), strict=True):
        output = space.freeze(sample)(inputs)
        expected[:, : output.shape[1]] += chance * output

    torch.testing.assert_close(space(inputs), expected)


def test_frozen_layer_keeps_the_slice_of_the_weights() -> None:
    space = Convolution()
    as_path(space)
    layer = space.layer
    assert isinstance(layer, PathMixedLayer)

    frozen = space.freeze({"size": 1, "width": 2}).layer

    assert type(frozen) is nn.Conv2d
    storage = layer.storage.get_parameter("weight")
    assert torch.equal(frozen.weight, storage[:2, :, 1:2, 1:2])


def test_unknown_mutable_argument_is_refused() -> None:
    class Biased(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.layer = MutableLinear(2, 2, bias=nni.choice("bias", [True, False]))

    with pytest.raises(TypeError, match="argument bias of MutableLinear must be fixed"):
        as_path(Biased())


def test_layer_without_rules_is_not_supported() -> None:
    class Sloped(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.layer = MutableLeakyReLU(nni.choice("slope", [0.1, 0.2]))

    assert slicing_of(nn.LeakyReLU) is None
    with pytest.raises(TypeError, match="MutableLeakyReLU at 'layer' is not supported"):
        as_mixture(Sloped())


def test_layer_of_too_many_labels_is_refused_with_its_name() -> None:
    width = sum(nni.choice(f"width{index}", list(range(1, 11))) for index in range(5))

    class Wide(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.layer = MutableLinear(1, width)

    with pytest.raises(TypeError, match=r"MutableLinear at 'layer' .* got 100000 of 5 labels"):
        as_path(Wide())
