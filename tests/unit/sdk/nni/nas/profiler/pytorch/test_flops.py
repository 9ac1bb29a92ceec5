"""Profilers of FLOPs and parameters."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

import nni
from nni.nas.nn.pytorch import LayerChoice, MutableLinear
from nni.nas.profiler import ExpressionProfiler, Profiler
from nni.nas.profiler.pytorch import (
    FlopsParamsProfiler,
    FlopsProfiler,
    FlopsResult,
    NumParamsProfiler,
    ShapeTensor,
    count_flops_params,
    profiler_leaf_module,
    register_flops_formula,
    register_shape_inference_formula,
)

VALUES = torch.zeros(1, 3)


def space() -> nn.Module:
    return MutableLinear(3, nni.choice("width", [4, 8]))


def test_both_numbers_or_one_of_them() -> None:
    sample = {"width": 8}

    assert FlopsParamsProfiler(space(), VALUES).profile(sample) == FlopsResult(32, 32)
    assert FlopsProfiler(space(), VALUES, count_bias=False).profile(sample) == 24
    assert NumParamsProfiler(space(), count_bias=False).profile(sample) == 24
    assert issubclass(FlopsProfiler, ExpressionProfiler)
    assert issubclass(FlopsParamsProfiler, Profiler)


def test_result_of_a_space_is_made_of_expressions() -> None:
    found = count_flops_params(space(), VALUES)

    assert found.flops.freeze({"width": 4}) == 16
    assert found.params.freeze({"width": 4}) == 16


def test_batch_is_left_out() -> None:
    assert count_flops_params(nn.Linear(3, 2), torch.zeros(64, 3)).flops == 8


def test_weights_are_not_needed() -> None:
    layer = nn.Linear(10**6, 10**6, device="meta")

    assert count_flops_params(layer, torch.zeros(1, 10**6)).params == 10**12 + 10**6


class Doubled(nn.Module):
    """Module that only its own methods know how to count."""

    def forward(self, values: Tensor) -> Tensor:
        return values.repeat_interleave(int(values.sum().item()) + 2, 1)

    def _shape_forward(self, values: ShapeTensor) -> ShapeTensor:
        return ShapeTensor((values.shape[0], values.shape[1] * 2))

    def _count_flops(self, inputs: Any, output: ShapeTensor, config: object) -> Any:
        del config
        return inputs[0].shape[1] + output.shape[1]


def test_module_of_a_user_brings_its_formulas() -> None:
    network = nn.Sequential(space(), Doubled(), nn.ReLU())

    assert FlopsProfiler(network, VALUES).profile({"width": 8}) == 32 + 24 + 16


def test_registered_formulas_hold_for_subclasses() -> None:
    class Base(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            return values.sort().values

    class Derived(Base):
        pass

    register_shape_inference_formula(Base, lambda module, values: values)
    register_flops_formula(Base, lambda module, inputs, output, config: output.shape[1] * 7)
    network = nn.Sequential(space(), Derived())

    assert FlopsProfiler(network, VALUES).profile({"width": 4}) == 16 + 28


def test_marked_module_is_counted_by_its_formula_only() -> None:
    @profiler_leaf_module
    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 3)

        def forward(self, values: Tensor) -> Tensor:
            result: Tensor = self.inner(values)
            return result

    network = LayerChoice([Block(), nn.Identity()], label="layer")

    assert count_flops_params(network, VALUES).flops == 0
    register_flops_formula(Block, lambda module, inputs, output, config: 100)
    assert FlopsProfiler(network, VALUES).profile({"layer": 0}) == 100
    with pytest.raises(TypeError, match="module_type must be a class"):
        profiler_leaf_module(Block())  # type: ignore[arg-type]
