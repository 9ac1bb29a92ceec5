"""Repetitions and cells with the arguments and labels of NNI 2.x."""

import warnings
from typing import Any

import pytest
import torch
from torch import nn

import nni.retiarii.nn.pytorch as legacy
from nni.retiarii import fixed_arch, model_wrapper

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")

with warnings.catch_warnings(action="ignore"):

    @model_wrapper
    class Net(nn.Module):
        """Network of a cell, whose inputs are twice the same, and an activation."""

        def __init__(self) -> None:
            super().__init__()
            self.cell = legacy.Cell([nn.Identity(), nn.ReLU()], 2, 1, 2, label="cell")
            self.act = legacy.AutoActivation(label="act")

        def forward(self, inputs: torch.Tensor) -> Any:
            return self.cell([inputs, inputs])


SAMPLE: dict[str, Any] = {
    "cell__op_0_0": "1",
    "cell__input_0_0": 1,
    "cell__op_1_0": "0",
    "cell__input_1_0": 2,
    "act__unary_0": "Identity",
    "act__unary_1": "Identity",
    "act__binary_0": "Add",
}


@pytest.mark.claim("nas", 32)
def test_labels_of_a_cell_count_nodes_from_zero() -> None:
    space: Any = Net()

    assert sorted(space.simplify()) == sorted(SAMPLE)


def test_architecture_of_a_cell_is_fixed_while_it_is_built() -> None:
    with fixed_arch(SAMPLE):
        network: Any = Net()

    assert isinstance(network.cell.ops[0][0], nn.ReLU)
    assert network.cell.inputs[1][0].chosen == [2]
    assert network(torch.tensor([[-1.0, 2.0]])).tolist() == [[0.0, 2.0, 0.0, 2.0]]


def test_cell_of_a_sample_is_that_of_fixed_arch() -> None:
    space: Any = Net()

    assert space.freeze(SAMPLE)(torch.tensor([[-1.0]])).tolist() == [[0.0, 0.0]]


def test_blocks_of_a_repetition_are_made_without_arguments() -> None:
    repeat = legacy.Repeat(nn.ReLU, (1, 3), "depth")

    assert len(repeat.freeze({"depth": 2})) == 2
    assert len(legacy.Repeat([nn.ReLU, nn.Tanh], 2).freeze({})) == 2


def test_repetition_of_an_architecture_has_its_depth() -> None:
    with fixed_arch({"depth": 2}):
        blocks: Any = legacy.Repeat(nn.Linear(2, 2), (1, 3), label="depth")

    assert len(blocks) == 2


@pytest.mark.claim("nas", 31)
@pytest.mark.parametrize("depth", [0, (0, 2)])
def test_least_depth_is_one(depth: Any) -> None:
    with pytest.raises(ValueError, match="depth must be >= 1"):
        legacy.Repeat(nn.ReLU, depth)


def test_choices_outside_a_wrapped_network_have_automatic_labels() -> None:
    choices: list[Any] = [
        legacy.LayerChoice([nn.ReLU()]),
        legacy.InputChoice(2),
        legacy.ValueChoice([1]),
    ]

    assert all(str(one.label).startswith("_mutation_") for one in choices)
    assert len({one.label for one in choices}) == 3


def test_automatic_labels_of_a_fixed_architecture_start_at_one() -> None:
    with fixed_arch({"_mutation_1": "1", "_mutation_2": 0}):
        layers = [legacy.LayerChoice([nn.ReLU(), nn.Tanh()]) for _ in range(2)]

    assert [type(one) for one in layers] == [nn.Tanh, nn.ReLU]
