"""Formulas of layers, compared with torch."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import nni
from nni.nas.nn.pytorch import MutableConv2d, MutableGroupNorm, MutableMaxPool2d
from nni.nas.profiler.pytorch.counter_config import FlopsParamsCounterConfig
from nni.nas.profiler.pytorch.flops import count_flops_params
from nni.nas.profiler.pytorch.layer_formulas import (
    PARAMS_FORMULAS,
    SHAPE_FORMULAS,
    checked_class,
    formula_of,
)
from nni.nas.profiler.pytorch.shapes import ShapeTensor, frozen_shapes

ZEROS = torch.zeros
CONFIG = FlopsParamsCounterConfig()
LAYERS: list[tuple[nn.Module, tuple[int, ...]]] = [
    (nn.Conv1d(4, 6, 3, stride=2), (1, 4, 9)),
    (nn.Conv2d(4, 6, (3, 1), padding=(1, 0), dilation=2), (1, 4, 9, 9)),
    (nn.Conv2d(4, 6, 3, padding="same"), (1, 4, 9, 9)),
    (nn.Conv3d(4, 6, 2, groups=2, padding="valid"), (1, 4, 5, 5, 5)),
    (nn.MaxPool2d(3, 2, ceil_mode=True), (1, 4, 8, 8)),
    (nn.MaxPool2d(2, ceil_mode=True, padding=1), (1, 4, 7, 7)),
    (nn.AvgPool2d(3, stride=1, padding=1), (1, 4, 8, 8)),
    (nn.AvgPool1d(2), (1, 4, 9)),
    (nn.AdaptiveAvgPool2d((2, None)), (1, 4, 8, 8)),
    (nn.Upsample(scale_factor=1.5), (1, 4, 5, 5)),
    (nn.Upsample(size=(3, 4)), (1, 4, 5, 5)),
    (nn.Flatten(), (2, 4, 5)),
    (nn.Linear(5, 3), (2, 4, 5)),
    (nn.LayerNorm(5), (2, 4, 5)),
    (nn.GroupNorm(2, 4), (2, 4, 5)),
    (nn.RMSNorm(5), (2, 4, 5)),
    (nn.Dropout2d(), (2, 4, 5, 5)),
    (nn.GLU(1), (2, 4, 5, 5)),
    (nn.GLU(), (2, 5, 4)),
]


@pytest.mark.parametrize(("layer", "shape"), LAYERS, ids=[str(one) for one, _ in LAYERS])
def test_shape_is_that_of_torch(layer: nn.Module, shape: tuple[int, ...]) -> None:
    formula = formula_of(layer, SHAPE_FORMULAS)

    assert formula(layer, ShapeTensor(shape)).shape == tuple(layer.eval()(torch.zeros(shape)).shape)


@pytest.mark.parametrize(
    "layer",
    [nn.MaxPool2d(2, return_indices=True), nn.AdaptiveMaxPool2d(2, return_indices=True)],
    ids=str,
)
def test_pooling_returns_indices_too(layer: nn.Module) -> None:
    formula = formula_of(layer, SHAPE_FORMULAS)

    found = formula(layer, ShapeTensor((1, 4, 8, 8)))

    assert [one.shape for one in found] == [
        tuple(one.shape) for one in layer(torch.zeros(1, 4, 8, 8))
    ]


def test_transposed_convolution_costs_what_the_convolution_does_that_it_transposes() -> None:
    image, features = ZEROS(1, 3, 9, 9), ZEROS(1, 8, 4, 4)
    down = nn.Conv2d(3, 8, 3, stride=2, bias=False)
    up = nn.ConvTranspose2d(8, 3, 3, stride=2, bias=False)
    biased = nn.ConvTranspose2d(8, 3, 3, stride=2)

    flops = count_flops_params(up, features).flops

    assert flops == count_flops_params(down, image).flops == 8 * 16 * 27
    assert count_flops_params(biased, features).flops == flops + 3 * 81


def test_activation_after_a_gated_unit_costs_half() -> None:
    layer = nn.Sequential(nn.GLU(1), nn.ReLU())

    assert count_flops_params(layer, ZEROS(1, 8, 4, 4)).flops == 128 + 64


def test_attention_returns_output_and_weights() -> None:
    layer = nn.MultiheadAttention(6, 3, batch_first=True)
    given = torch.zeros(2, 8, 6), torch.zeros(2, 7, 6), torch.zeros(2, 7, 6)
    formula = formula_of(layer, SHAPE_FORMULAS)

    found = formula(layer, *(ShapeTensor(tuple(one.shape)) for one in given))

    assert [one.shape for one in found] == [tuple(one.shape) for one in layer(*given)]


def test_embedding_adds_a_dimension() -> None:
    layer = nn.Embedding(10, 3)

    assert SHAPE_FORMULAS[nn.Embedding](layer, ShapeTensor((2, 5))).shape == (2, 5, 3)


@pytest.mark.parametrize("kernel", [3, 5])
@pytest.mark.parametrize("width", [4, 8])
def test_mutable_arguments_are_followed(kernel: int, width: int) -> None:
    choice = nni.choice("kernel", [3, 5])
    layer = MutableConv2d(4, nni.choice("width", [4, 8]), choice, padding=choice // 2, groups=2)
    sample = {"kernel": kernel, "width": width}
    shape = SHAPE_FORMULAS[nn.Conv2d](layer, ShapeTensor((1, 4, 9, 9)))
    real = layer.freeze(sample)

    assert frozen_shapes(shape, sample).shape == tuple(real(torch.zeros(1, 4, 9, 9)).shape)
    assert PARAMS_FORMULAS[nn.Conv2d](layer, CONFIG).freeze(sample) == sum(
        one.numel() for one in real.parameters()
    )


def test_pooling_and_group_normalization_may_be_mutable() -> None:
    kernel = nni.choice("kernel", [2, 3])
    pool = SHAPE_FORMULAS[nn.modules.pooling._MaxPoolNd](
        MutableMaxPool2d(kernel), ShapeTensor((1, 4, 9, 9))
    )
    norm = MutableGroupNorm(2, nni.choice("width", [4, 8]))

    assert frozen_shapes(pool, {"kernel": 2}).shape == (1, 4, 4, 4)
    assert PARAMS_FORMULAS[nn.GroupNorm](norm, CONFIG).freeze({"width": 8}) == 16


CHECKS: list[tuple[nn.Module, Any, int]] = [
    (nn.Linear(3, 2), ZEROS(1, 3), 8),
    (nn.Linear(3, 2, bias=False), ZEROS(1, 3), 6),
    (nn.Linear(3, 2), ZEROS(2, 5, 3), 40),
    (nn.Conv2d(3, 2, 3), ZEROS(1, 3, 224, 224), 2_759_904),
    (nn.Sequential(nn.BatchNorm2d(3), nn.ReLU()), ZEROS(1, 3, 12, 12), 3 * 144 * 5),
    (nn.MultiheadAttention(6, 3), (ZEROS(8, 1, 6), ZEROS(7, 1, 6), ZEROS(7, 1, 6)), 2148),
]


@pytest.mark.claim("nas", 77)
@pytest.mark.parametrize(("layer", "args", "flops"), CHECKS, ids=[str(one[0]) for one in CHECKS])
def test_flops_are_those_of_the_specification(layer: nn.Module, args: Any, flops: int) -> None:
    assert count_flops_params(layer, args).flops == flops


def test_bilinear_layer_costs_two_products_for_each_output() -> None:
    given = ZEROS(2, 3), ZEROS(2, 4)

    # 5 outputs, each of 3 * 4 for the product with the second input, 3 for the first, and a bias.
    assert count_flops_params(nn.Bilinear(3, 4, 5), given).flops == 5 * (12 + 3 + 1)
    assert count_flops_params(nn.Bilinear(3, 4, 5, bias=False), given).flops == 75
    assert SHAPE_FORMULAS[nn.Bilinear](
        nn.Bilinear(3, 4, 5), *(ShapeTensor(tuple(one.shape)) for one in given)
    ).shape == (2, 5)


def test_rms_normalization_scales_and_does_not_shift() -> None:
    plain = nn.RMSNorm(8, elementwise_affine=False)

    assert count_flops_params(nn.RMSNorm(8), ZEROS(2, 5, 8)).flops == 40 * 3
    assert count_flops_params(plain, ZEROS(2, 5, 8)).flops == 40 * 2


def test_what_is_not_counted_is_zero() -> None:
    layer = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.ReLU())
    found = [
        count_flops_params(layer, ZEROS(1, 3), FlopsParamsCounterConfig(*switched))
        for switched in ((True, True, True), (False, True, True), (True, False, True))
    ]
    without_activation = FlopsParamsCounterConfig(count_activation=False)

    assert [one.flops for one in found] == [8 + 8 + 2, 6 + 8 + 2, 8 + 2]
    assert [one.params for one in found] == [8 + 4, 6 + 4, 8]
    assert count_flops_params(layer, ZEROS(1, 3), without_activation).flops == 8 + 8


def test_formulas_are_of_classes_of_modules() -> None:
    with pytest.raises(TypeError, match=r"module_type must be a class of torch\.nn\.Module"):
        checked_class(nn.Linear(3, 2))
