"""Layers under the names of torch."""

from typing import Any

import pytest
import torch

import nni
import nni.nas.nn.pytorch.layers as nn
from nni.common.serializer import dump
from nni.mutable import Categorical
from nni.nas.nn.pytorch import ModelSpace
from nni.nas.nn.pytorch.torch_modules import torch_module_names
from nni.nas.space import (
    ExecutableModelSpace,
    GraphModelSpace,
    RawFormatModelSpace,
    SimplifiedModelSpace,
)
from nni.nas.utils import is_basic_unit


def test_module_can_replace_that_of_torch() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU())

    assert set(torch_module_names()) < set(nn.__all__)
    assert [is_basic_unit(layer) for layer in Net().body] == [True, True]


class Block(nn.Sequential):
    """Container of one's own."""

    def __init__(self, inputs: int, outputs: Any) -> None:
        super().__init__(nn.Linear(inputs, outputs), nn.ReLU())


class Blocks(ModelSpace):
    """Network of containers whose layers have a mutable width."""

    def __init__(self) -> None:
        super().__init__()
        width = nni.choice("width", [3, 5])
        self.body = Block(4, width)
        self.layers = nn.ModuleList([nn.Linear(width, width), nn.Linear(width, 2)])

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.body(inputs)
        for layer in self.layers:
            outputs = layer(outputs)
        return outputs


@pytest.mark.parametrize(
    "model_format", [RawFormatModelSpace, SimplifiedModelSpace, GraphModelSpace]
)
def test_layers_in_containers_may_be_mutable(model_format: type[ExecutableModelSpace]) -> None:
    model = model_format.from_model(Blocks()).freeze({"width": 5})

    network = model.executable_model()

    assert [tuple(one.shape) for one in network.parameters()] == [
        (5, 4), (5,), (5, 5), (5,), (2, 5), (2,),
    ]  # fmt: skip
    assert network(torch.ones(1, 4)).shape == (1, 2)


def test_arguments_may_be_mutable() -> None:
    layer = nn.Linear(2, Categorical([3, 4], label="width"))

    assert layer.freeze({"width": 4}).out_features == 4


def test_layer_is_dumped_by_its_name() -> None:
    assert dump(nn.ReLU()) == '{"__symbol__": "path:nni.nas.nn.pytorch.layers.ReLU"}'


def test_other_names_are_those_of_torch() -> None:
    assert nn.Parameter is torch.nn.Parameter
    assert nn.functional is torch.nn.functional
    with pytest.raises(AttributeError, match="Absent"):
        _ = nn.Absent
