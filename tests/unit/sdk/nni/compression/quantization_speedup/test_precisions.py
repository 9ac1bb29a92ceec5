"""Precision of each layer, and what is refused."""

from __future__ import annotations

import pytest
from torch import nn

from nni.compression.quantization_speedup.precisions import precisions_of

RANGE = {"tracked_min_input": -1.0, "tracked_max_input": 2.0}


@pytest.fixture
def model() -> nn.Module:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))


def test_layers_are_sorted_by_their_bits(model: nn.Module) -> None:
    found = precisions_of(model, {"0": {"weight_bits": 8, **RANGE}, "2": {"weight_bits": 16}}, 32)

    assert list(found.integers) == ["0"]
    assert found.integers["0"]["_input_0"]["quant_bits"] == 8
    assert {"tracked_min", "tracked_max"} <= found.integers["0"]["weight"].keys()
    assert found.halves == ("2",)


def test_layers_without_a_configuration_have_the_extra_bits(model: nn.Module) -> None:
    assert precisions_of(model, {"0": {"weight_bits": 32}}, 16).halves == ("2",)


def test_ranges_around_zero_hold_the_largest_magnitude(model: nn.Module) -> None:
    found = precisions_of(model, {"0": {"weight_bits": 8, **RANGE}}, 32).symmetric()

    entry = found.integers["0"]["_input_0"]
    assert (entry["quant_dtype"], entry["zero_point"]) == ("int8", 0.0)
    assert entry["scale"] == pytest.approx(2 / 127)
    assert found.symmetric() == found


def test_a_zero_point_without_a_range_is_refused(model: nn.Module) -> None:
    numbers = {"quant_bits": 8, "quant_dtype": "uint8", "scale": 0.1, "zero_point": 3.0}
    found = precisions_of(model, {"1": {"_output_0": numbers}}, 32)

    with pytest.raises(ValueError, match="must have tracked_min and tracked_max"):
        found.symmetric()


def test_an_output_needs_no_weight(model: nn.Module) -> None:
    ends = {"tracked_min_output": 0.0, "tracked_max_output": 1.0}

    assert list(precisions_of(model, {"1": {"output_bits": 8, **ends}}, 32).integers["1"]) == [
        "_output_0"
    ]
