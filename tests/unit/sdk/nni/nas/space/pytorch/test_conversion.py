"""Conversion of networks to graphs."""

import pytest
import torch
from torch import Tensor, nn

from nni.nas.nn.pytorch import Cell, LayerChoice, Repeat
from nni.nas.space import GraphModelSpace, IllegalGraphError
from nni.nas.space.pytorch import PytorchGraphModelSpace
from tests.unit.sdk.nni.nas.graph_models import (
    AnchorNet,
    Branch,
    EverySpace,
    OwnParameter,
    UsedValue,
)


class Shared(nn.Module):
    """Network that calls one module twice."""

    def __init__(self) -> None:
        super().__init__()
        self.branch = Branch(4)
        self.layer = nn.Linear(4, 4)

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.branch(self.layer(self.branch(self.layer(inputs))))
        return output


class TwoOutputs(nn.Module):
    """Network of two inputs, and of two outputs in a dict."""

    def forward(self, first: Tensor, second: Tensor) -> dict[str, Tensor]:
        low, high = torch.chunk(first + second, 2, 1)
        return {"low": low, "high": -high}


def test_other_modules_are_graphs_of_their_own() -> None:
    model = PytorchGraphModelSpace.from_model(EverySpace())

    assert list(model.graphs) == ["_model", "_model__layer__0", "_model__branch"]
    assert [node.name for node in model.get_cell_nodes()] == ["branch"]


def test_nodes_have_types_names_and_labels() -> None:
    model = PytorchGraphModelSpace.from_model(EverySpace())

    layer = model.get_node_by_python_name("layer")
    assert layer is not None
    assert layer.operation.type == "__torch__.nni.nas.nn.pytorch.choice.LayerChoice"
    assert layer.label == "every/layer"
    assert [node.operation.type for node in model.get_nodes_by_type("Function.torch.cat")]


def test_anchor_has_its_information_as_parameters() -> None:
    (node,) = PytorchGraphModelSpace.from_model(AnchorNet()).get_nodes_by_label("second")

    assert node.operation.parameters == {"label": "second", "features": 4}


def test_module_that_is_called_twice_is_one_graph_with_one_set_of_weights() -> None:
    model = PytorchGraphModelSpace.from_model(Shared())

    network = model.build_model()

    assert list(model.graphs) == ["_model", "_model__branch"]
    assert sorted(network.state_dict()) == [
        *("branch.branch__inner.bias", "branch.branch__inner.weight", "layer.bias", "layer.weight")
    ]


def test_several_inputs_and_outputs_are_kept() -> None:
    network = GraphModelSpace.from_model(TwoOutputs()).build_model()

    output = network(torch.ones(1, 4), second=torch.ones(1, 4))

    assert {name: value.tolist() for name, value in output.items()} == {
        "low": [[2.0, 2.0]],
        "high": [[-2.0, -2.0]],
    }


@pytest.mark.parametrize(
    ("network", "text"),
    [
        (OwnParameter(), "uses its own tensor 'scale'"),
        (UsedValue(), "^UsedValue registers mutables"),
        (nn.Sequential(UsedValue()), "module '0': UsedValue registers mutables"),
        (LayerChoice([nn.ReLU(), nn.Tanh()], label="act"), "^LayerChoice must be a part"),
        (Repeat(nn.ReLU(), (1, 2), label="depth"), "^Repeat must be a part"),
        (nn.Sequential(Cell([nn.ReLU()], 1, label="c")), "module '0': Cell is frozen in a way"),
    ],
)
def test_network_that_has_no_graph_is_refused_with_the_remedy(
    network: nn.Module, text: str
) -> None:
    with pytest.raises(IllegalGraphError, match=text):
        PytorchGraphModelSpace.from_model(network)
