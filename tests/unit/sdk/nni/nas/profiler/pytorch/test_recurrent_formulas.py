"""Formulas of recurrent layers, compared with numbers by hand, with torch and with the counter."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

import nni
from nni.compression.speedup.counter import count_flops_params as counted_by_hooks
from nni.nas.nn.pytorch import ModelSpace, MutableGRU
from nni.nas.profiler.pytorch.counter_config import FlopsParamsCounterConfig
from nni.nas.profiler.pytorch.flops import FlopsProfiler, count_flops_params
from nni.nas.profiler.pytorch.layer_formulas import (
    SHAPE_FORMULAS,
    formula_of,
)
from nni.nas.profiler.pytorch.shapes import ShapeTensor, shapes_in

STEPS, BATCH, WIDTH, HIDDEN = 5, 2, 4, 8
SEQUENCES = (STEPS, BATCH, WIDTH)

# A gate of width 8 that reads 4 and 8 numbers: 8 * (4 + 8) products, 8 sums, 2 * 8 biases.
GATE = 96 + 8 + 16
LSTM_STEP = 4 * GATE + 4 * 8 + 5 * 8
GRU_STEP = 3 * GATE + 4 * 8 + 3 * 8
WIDE_LSTM_STEP = 4 * (8 * (16 + 8) + 8 + 16) + 4 * 8 + 5 * 8
PROJECTED_STEP = 4 * (8 * (4 + 3) + 8 + 16) + 4 * 8 + 5 * 8 + 8 * 3

CASES: list[tuple[nn.Module, tuple[int, ...], int]] = [
    (nn.LSTM(4, 8), SEQUENCES, STEPS * LSTM_STEP),
    (nn.GRU(4, 8), SEQUENCES, STEPS * GRU_STEP),
    (nn.RNN(4, 8), SEQUENCES, STEPS * (GATE + 8)),
    (nn.LSTM(4, 8, bias=False), SEQUENCES, STEPS * (LSTM_STEP - 4 * 16)),
    (nn.LSTM(4, 8, batch_first=True), (BATCH, STEPS, WIDTH), STEPS * LSTM_STEP),
    (nn.LSTM(4, 8), (STEPS, WIDTH), STEPS * LSTM_STEP),
    (nn.LSTM(4, 8, 2, bidirectional=True), SEQUENCES, STEPS * 2 * (LSTM_STEP + WIDE_LSTM_STEP)),
    (nn.LSTM(4, 8, proj_size=3), SEQUENCES, STEPS * PROJECTED_STEP),
    (nn.LSTMCell(4, 8), (BATCH, WIDTH), LSTM_STEP),
    (nn.GRUCell(4, 8), (BATCH, WIDTH), GRU_STEP),
    (nn.RNNCell(4, 8), (WIDTH,), GATE + 8),
]
IDS = [f"{layer}, {shape}" for layer, shape, _ in CASES]


@pytest.mark.parametrize(("layer", "shape", "flops"), CASES, ids=IDS)
def test_flops_are_those_computed_by_hand(
    layer: nn.Module, shape: tuple[int, ...], flops: int
) -> None:
    assert count_flops_params(layer, torch.zeros(shape)).flops == flops


@pytest.mark.filterwarnings("ignore:LSTM with projections")  # it runs without oneDNN
@pytest.mark.parametrize(("layer", "shape"), [case[:2] for case in CASES], ids=IDS)
def test_shapes_are_those_of_torch(layer: nn.Module, shape: tuple[int, ...]) -> None:
    found = formula_of(layer, SHAPE_FORMULAS)(layer, ShapeTensor(shape))

    expected = shapes_in(_shapes(layer(torch.zeros(shape))))
    assert [one.shape for one in shapes_in(found)] == [one.shape for one in expected]


def _shapes(output: Any) -> Any:
    if isinstance(output, tuple):
        return tuple(map(_shapes, output))
    return ShapeTensor(tuple(output.shape))


@pytest.mark.parametrize("layer", [nn.LSTM(4, 8, 2), nn.GRU(4, 8), nn.RNN(4, 8)], ids=str)
def test_flops_without_activations_are_those_of_the_compression_counter(layer: nn.Module) -> None:
    given = torch.zeros(SEQUENCES)
    config = FlopsParamsCounterConfig(count_activation=False)

    counted = counted_by_hooks(layer, given, verbose=False, mode="full")[0]

    assert count_flops_params(layer, given, config).flops == counted


@pytest.mark.parametrize("by_name", [True, False])
def test_mutable_width_is_followed_to_the_next_layer(*, by_name: bool) -> None:
    width = nni.choice("width", [8, 16])
    layer = MutableGRU(input_size=4, hidden_size=width) if by_name else MutableGRU(4, width)
    space = Gated(layer)

    profiler = FlopsProfiler(space, torch.zeros(SEQUENCES))

    for size, step in ((8, GRU_STEP), (16, 3 * (16 * (4 + 16) + 16 + 32) + 4 * 16 + 3 * 16)):
        expected = STEPS * step + BATCH * size  # ReLU leaves out the first dimension
        assert profiler.profile({"width": size}) == expected


class Gated(ModelSpace):
    """Recurrent layer and an activation."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer
        self.activation = nn.ReLU()

    def forward(self, sequences: Any) -> Any:
        return self.activation(self.layer(sequences)[0])
