"""Numbers of parameters."""

from __future__ import annotations

import pytest
from torch import nn

import nni
from nni.nas.nn.pytorch import InputChoice, LayerChoice, MutableLayerNorm, MutableLinear, Repeat
from nni.nas.profiler.pytorch.counter_config import FlopsParamsCounterConfig
from nni.nas.profiler.pytorch.parameters import parameters_of

CONFIG = FlopsParamsCounterConfig()


def test_shared_modules_and_weights_count_once() -> None:
    layer, tied = nn.Linear(3, 3), nn.Linear(3, 3, bias=False)
    tied.weight = layer.weight

    assert parameters_of(nn.Sequential(layer, layer, tied), CONFIG) == 12


@pytest.mark.parametrize("chosen", ["wide", "none"])
@pytest.mark.parametrize("depth", [1, 2])
def test_choices_count_what_is_chosen(chosen: str, depth: int) -> None:
    width = nni.choice("width", [4, 8])
    space = nn.Sequential(
        LayerChoice({"wide": MutableLinear(3, width), "none": nn.Identity()}, label="layer"),
        Repeat(lambda _: nn.Linear(3, 3), (1, 2), label="depth"),
        Repeat(lambda _: nn.Linear(3, 3), 1),
        InputChoice(2, label="input"),
    )
    sample = {"layer": chosen, "width": 8, "depth": depth, "input": [0]}

    expected = (32 if chosen == "wide" else 0) + 12 * depth + 12

    assert parameters_of(space, CONFIG).freeze(sample) == expected


def test_layer_without_a_formula_is_built_for_each_value() -> None:
    space = MutableLayerNorm(nni.choice("width", [4, 8]))

    assert parameters_of(space, CONFIG).freeze({"width": 8}) == 16


def test_biases_and_normalization_can_be_left_out() -> None:
    network = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))

    assert parameters_of(network, FlopsParamsCounterConfig(count_bias=False)) == 6 + 4
    assert parameters_of(network, FlopsParamsCounterConfig(count_normalization=False)) == 8
