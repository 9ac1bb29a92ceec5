"""Recording of operations by one run."""

import torch
from torch import Tensor, nn

from nni.compression.speedup.graph import Ref
from nni.compression.speedup.recording import capture
from tests.unit.sdk.nni.compression.models import Auxiliary, build


def test_nodes_hold_operation_module_and_parameters() -> None:
    model, inputs = build("plain")

    graph = capture(model, inputs)

    [first, second] = [node for node in graph.nodes if node.op == "aten.convolution"]
    weight = first.args["weight"]
    assert isinstance(weight, Ref)
    assert graph.values[weight.index].source == "conv1.0.weight"
    assert (first.module, second.module) == ("conv1.0", "conv2.0")
    assert [graph.values[one].shape for one in graph.outputs] == [(2, 5)]
    assert [graph.values[one].shape for one in graph.inputs] == [(2, 3, 8, 8)]


def test_elementwise_operations_are_marked() -> None:
    model, inputs = build("residual")

    pointwise = {node.op: node.pointwise for node in capture(model, inputs).nodes}

    assert pointwise["aten.add"]
    assert not pointwise["aten.convolution"]


def test_an_operation_in_place_that_changes_the_shape_makes_a_new_value() -> None:
    class Turned(nn.Module):
        def forward(self, features: Tensor) -> Tensor:
            return (features + 1).transpose_(0, 1).relu_()

    graph = capture(Turned(), torch.zeros(2, 3))

    assert [graph.values[node.outputs[0]].shape for node in graph.nodes] == [(2, 3), (3, 2), (3, 2)]
    assert graph.nodes[1].outputs == graph.nodes[2].outputs == graph.outputs


def test_recurrent_layers_are_recorded_as_operations() -> None:
    ops = {node.op for node in capture(nn.LSTM(3, 4), torch.zeros(2, 1, 3)).nodes}

    assert "aten.sigmoid_" in ops
    assert torch._C._get_mkldnn_enabled()


def test_a_shared_weight_is_one_value() -> None:
    model, inputs = build("reused")

    sources = capture(model, inputs).sources

    assert "twice.weight" in sources
    assert "tied.weight" not in sources


def test_heads_of_training_are_recorded_in_a_second_run() -> None:
    model = Auxiliary().eval()

    graph = capture(model, torch.zeros(1, 3, 4, 4))

    assert graph.training_heads
    assert [graph.values[one].shape for one in graph.outputs] == [(1, 5)] * 3
    assert {name for name, _ in model.named_parameters()} <= graph.sources.keys()
    assert graph.runs["trunk"] == 1


def test_a_second_run_without_further_parameters_is_dropped() -> None:
    model = nn.ModuleDict({"used": nn.Linear(2, 3), "unused": nn.Linear(2, 2)})
    model.forward = model["used"].forward

    graph = capture(model, torch.zeros(1, 2))

    assert not graph.training_heads
    assert len(graph.nodes) == 2


def test_a_second_run_that_fails_is_dropped() -> None:
    class Training(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head, self.loss = nn.Linear(2, 3), nn.Linear(3, 3)

        def forward(self, features: Tensor) -> Tensor:
            found = self.head(features)
            if not self.training:
                return found
            raise ValueError("targets are needed")

    graph = capture(Training().eval(), torch.zeros(1, 2))

    assert not graph.training_heads
    assert [graph.nodes[-1].outputs[0]] == graph.outputs
