"""Modules as one node."""

from typing import Any

import pytest
from torch import nn

from nni.nas.nn.pytorch import layers
from nni.nas.space import IllegalGraphError
from nni.nas.space.pytorch.network import build_unit
from nni.nas.space.pytorch.units import is_unit, unit_operation
from tests.unit.sdk.nni.nas.graph_models import Branch, Cutoff


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.ReLU(), True),
        (Cutoff(1.0), True),
        (nn.Sequential(nn.ReLU()), False),
        (nn.ModuleList([]), False),
        (Branch(1), False),
    ],
)
def test_modules_of_torch_and_basic_units_are_nodes(module: nn.Module, expected: bool) -> None:
    assert is_unit(module) is expected


@pytest.mark.parametrize(
    "module",
    [
        nn.Conv2d(3, 4, 3, stride=2, padding=1, groups=1, bias=False),
        nn.ConvTranspose2d(3, 4, 3),
        nn.BatchNorm2d(3, eps=1e-3, affine=False),
        nn.LayerNorm([4, 5]),
        nn.Dropout(0.3),
        nn.Linear(3, 4, bias=False),
        nn.Embedding(5, 3),
        nn.MaxPool2d(2, ceil_mode=True),
        nn.AdaptiveAvgPool2d((1, 1)),
        nn.Flatten(1),
        nn.GELU("tanh"),
        nn.MultiheadAttention(4, 2),
        nn.PReLU(3),
    ],
    ids=lambda module: type(module).__name__,
)
def test_arguments_of_modules_of_torch_are_recovered(module: nn.Module) -> None:
    again = build_unit(unit_operation(module))

    assert repr(again) == repr(module)
    assert {name: value.shape for name, value in again.state_dict().items()} == {
        name: value.shape for name, value in module.state_dict().items()
    }


def test_arguments_at_their_defaults_are_left_out() -> None:
    assert unit_operation(nn.Linear(3, 4)).parameters == {"in_features": 3, "out_features": 4}


def test_recorded_arguments_are_used_as_they_are() -> None:
    assert unit_operation(Cutoff(0.5)).parameters == {"limit": 0.5}


def test_module_whose_arguments_are_not_known_is_refused() -> None:
    with pytest.raises(IllegalGraphError, match="the arguments of LSTM are not known"):
        unit_operation(nn.LSTM(3, 4, num_layers=2))


def test_module_of_the_layers_package_records_them() -> None:
    make: Any = layers.TransformerEncoderLayer

    assert make(4, 2, 8).graph_form().kwargs["d_model"] == 4


def test_class_that_is_defined_in_a_function_is_refused() -> None:
    class Local(nn.ReLU):
        pass

    Local.__module__ = "torch.nn.local"

    with pytest.raises(IllegalGraphError, match="is defined in a function"):
        unit_operation(Local())
