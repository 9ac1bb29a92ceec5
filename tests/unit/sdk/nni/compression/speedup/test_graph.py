"""Recording of operations by one run."""

import torch
from torch import Tensor, nn

from nni.compression.speedup.graph import Ref, capture, run, tensors_in
from tests.unit.sdk.nni.compression.models import build


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


def test_flags_buffers_and_cached_attributes_are_restored() -> None:
    class Caching(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = nn.BatchNorm1d(3)
            self.cached: Tensor | None = None

        def forward(self, features: Tensor) -> Tensor:
            self.cached = features
            return self.norm(features)

    model = Caching().train()
    before = {name: value.clone() for name, value in model.state_dict().items()}

    capture(model, torch.randn(4, 3), training=True)

    assert model.training
    assert model.norm.training
    assert model.cached is None
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


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


def test_inputs_may_be_lists_and_dicts() -> None:
    model = nn.Bilinear(2, 3, 4)
    left, right = torch.zeros(1, 2), torch.zeros(1, 3)

    for inputs in ((left, right), {"input1": left, "input2": right}):
        assert run(model, inputs).shape == (1, 4)
        assert len(capture(model, inputs).inputs) == 2


def test_a_shared_weight_is_one_value() -> None:
    model, inputs = build("reused")

    sources = capture(model, inputs).sources

    assert "twice.weight" in sources
    assert "tied.weight" not in sources


def test_tensors_of_nested_outputs_are_found() -> None:
    tensor = torch.zeros(1)

    assert len(tensors_in({"a": [tensor, (tensor, None)], "b": 1})) == 2
