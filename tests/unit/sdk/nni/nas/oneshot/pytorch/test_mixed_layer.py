"""Layers with mutable arguments in a supernet."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import nni
from nni.nas.nn.pytorch import (
    ModelSpace,
    MutableConv2d,
    MutableLeakyReLU,
    MutableLinear,
    MutableMultiheadAttention,
)
from nni.nas.oneshot.pytorch.mixed_layer import MixingLayer, PathMixedLayer, positional
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


class Attention(ModelSpace):
    def __init__(self) -> None:
        super().__init__()
        heads = nni.choice("heads", [1, 2])
        self.attention = MutableMultiheadAttention(4, heads, batch_first=True)

    def forward(self, inputs: Any) -> Any:
        output, weights = self.attention(inputs, inputs, inputs, need_weights=False)
        assert weights is None
        return output


@pytest.mark.parametrize("convert", [as_path, as_mixture])
def test_layers_take_named_inputs_as_layers_of_torch_do(convert: Callable[..., Any]) -> None:
    space = Attention()
    convert(space)

    output = space(torch.ones(2, 3, 4))

    assert output.shape == (2, 3, 4)


def test_inputs_that_the_layer_does_not_take_are_refused() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'mask'"):
        positional(nn.Linear, (1,), {"mask": 2})
    with pytest.raises(TypeError, match="must have a position, got the keywords scale"):
        positional(_Named, (1,), {"scale": 2})


class _Named(nn.Module):
    def forward(self, inputs: Any, *, scale: float = 1.0) -> Any:
        return inputs * scale


class _Doubled(MutableLinear):
    def forward(self, inputs: Any) -> Any:
        return 2 * super().forward(inputs)


def test_layer_with_a_forward_pass_of_its_own_is_refused() -> None:
    class Own(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.layer = _Doubled(2, nni.choice("width", [1, 2]))

    with pytest.raises(TypeError, match=r"_Doubled at 'layer'.* overrides forward of Linear"):
        as_path(Own())


@pytest.mark.parametrize("convert", [as_path, as_mixture])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize("first", [True, False])
def test_dtype_and_mode_survive_the_conversion_and_the_freezing(
    convert: Callable[..., Any], dtype: torch.dtype, first: bool
) -> None:
    space = Convolution()
    if first:
        space.to(dtype).eval()
        convert(space)
    else:
        convert(space)
        space.to(dtype).eval()
    inputs = torch.ones(1, 2, 4, 4, dtype=dtype)

    frozen = space.freeze({"size": 3, "width": 2})

    assert (space(inputs).dtype, frozen(inputs).dtype) == (dtype, dtype)
    assert not any(one.training for one in (*space.modules(), *frozen.modules()))
