"""Measured latency, with a clock that the test controls or real time."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import nni
from nni.nas.nn.pytorch import LayerChoice, ModelSpace, MutableLinear
from nni.nas.profiler import LatencyFilter
from nni.nas.profiler.pytorch import CannotProfileError, LatencyProfiler, LatencyTable, ShapeTensor
from nni.nas.space import RawFormatModelSpace

VALUES = torch.zeros(4, 3)


class Ticks:
    """Clock on which every call of it takes one millisecond."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 0.001
        return self.now


class Net(ModelSpace):
    def __init__(self) -> None:
        super().__init__()
        self.first = MutableLinear(3, nni.choice("width", [4, 8]))
        self.second = LayerChoice(
            {"two": nn.Sequential(nn.ReLU(), nn.Tanh()), "none": nn.Sequential()}, label="second"
        )

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = self.second(self.first(values))
        return result


def test_latency_of_a_network_is_the_sum_of_its_layers() -> None:
    profiler = LatencyProfiler(Net(), VALUES, LatencyTable(clock=Ticks()))

    assert profiler.profile({"width": 4, "second": "none"}) == pytest.approx(1)
    assert profiler.profile({"width": 8, "second": "two"}) == pytest.approx(3)


def test_each_layer_with_its_shapes_is_measured_once() -> None:
    table = LatencyTable(clock=Ticks())
    LatencyProfiler(Net(), VALUES, table)
    rows = dict(table.rows)
    LatencyProfiler(Net(), VALUES, table)

    assert set(rows) == {
        "Linear(in_features=3, out_features=4, bias=True) (4, 3)",
        "Linear(in_features=3, out_features=8, bias=True) (4, 3)",
        *(f"{layer}() (4, {width})" for layer in ("ReLU", "Tanh") for width in (4, 8)),
    }
    assert table.rows == rows


def test_table_is_stored_and_read(tmp_path: Path) -> None:
    table = LatencyTable({"ReLU() (1, 3)": 5.0})
    table.save(tmp_path / "table.json")

    found = LatencyTable.load(tmp_path / "table.json", repeats=1)

    assert found.measure(nn.ReLU(), [ShapeTensor((1, 3))]) == 5.0


def test_real_clock_measures_more_for_more_work() -> None:
    table = LatencyTable(repeats=5)
    small = table.measure(nn.Linear(8, 8), [ShapeTensor((1, 8))])
    large = table.measure(nn.Linear(1500, 1500), [ShapeTensor((64, 1500))])

    # 150 million multiplications against 64; both take at least the call.
    assert large > small > 0


def test_profiler_is_a_filter_of_models() -> None:
    space = Net()
    profiler = LatencyProfiler(space, VALUES, LatencyTable(clock=Ticks()))
    admits = LatencyFilter(2, profiler)
    models = RawFormatModelSpace.from_model(space)

    admitted = {
        second: admits(models.freeze({"width": 4, "second": second})) for second in ("two", "none")
    }

    assert admitted == {"two": False, "none": True}


def test_too_many_sizes_are_refused() -> None:
    space = MutableLinear(3, nni.choice("width", list(range(1, 1000))))

    with pytest.raises(CannotProfileError, match="is measured one by one: its width"):
        LatencyProfiler(space, VALUES, LatencyTable(clock=Ticks()))


def test_number_of_runs_must_be_positive() -> None:
    with pytest.raises(ValueError, match="repeats must be >= 1, got 0"):
        LatencyTable(repeats=0)


class Repeated(nn.Module):
    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def forward(self, inputs: Tensor) -> Tensor:
        return inputs * self.times


def test_layers_whose_text_has_no_arguments_have_rows_of_their_own() -> None:
    table = LatencyTable(repeats=1, warm_up=0)
    inputs = [ShapeTensor((4, 1, 8))] * 3

    for layer in (nn.MultiheadAttention(8, 2), nn.MultiheadAttention(8, 4)):
        table.measure(layer, inputs)
    for times in (1, 2, 2):
        table.measure(Repeated(times), inputs[:1])

    assert len(table.rows) == 4
