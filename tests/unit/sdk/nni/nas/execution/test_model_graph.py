import json
import logging
from typing import Any

import pytest
import torch
from torch import nn

import nni
from nni.nas.execution.model_graph import NODES_LIMIT, PARTS_LIMIT, model_graph_of
from nni.nas.nn.pytorch import (
    Cell,
    InputChoice,
    LayerChoice,
    ModelSpace,
    MutableLinear,
    MutableModule,
    Repeat,
)
from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import to_value
from svc_common.rpc.message_parts import count_parts

ONE_NODE_MORE = 12  # parts


def graphs(network: nn.Module) -> list[dict[str, Any]]:
    found = model_graph_of(network)
    assert found is not None
    assert json.loads(json.dumps(found)) == found
    assert found["cut"] is False
    return list(found["graphs"])


def root(network: nn.Module) -> dict[str, Any]:
    return graphs(network)[0]


def node(graph: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [one for one in graph["nodes"] if one["name"] == name]
    return dict(found)


def edges(graph: dict[str, Any]) -> set[tuple[Any, ...]]:
    names = [one["name"] for one in graph["nodes"]]
    return {(names[one[0]], names[one[1]], *one[2:]) for one in graph["edges"]}


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        return torch.relu(self.inner(x) + x)


def test_what_is_no_torch_module_has_no_graph() -> None:
    assert model_graph_of({"x": 1}) is None


def test_data_flow_of_forward_becomes_edges() -> None:
    graph = root(Residual())

    assert graph["name"] == "Residual"
    assert graph["traced"] is True
    assert [(one["name"], one["kind"]) for one in graph["nodes"]] == [
        *(("x", "input"), ("inner", "module"), ("add", "function"), ("relu", "function")),
        ("output", "output"),
    ]
    assert node(graph, "inner")["text"] == "Linear(in_features=4, out_features=4, bias=True)"
    assert edges(graph) == {
        *(("x", "inner"), ("inner", "add"), ("x", "add"), ("add", "relu"), ("relu", "output")),
    }


def test_module_with_parts_has_a_graph_of_its_own_and_modules_of_torch_have_none() -> None:
    found = graphs(nn.Sequential(Residual(), nn.Linear(4, 4)))

    assert node(found[0], "0")["graph"] == 1
    assert "graph" not in node(found[0], "1")
    assert [graph["name"] for graph in found] == ["Sequential", "Residual"]


def test_module_that_is_called_twice_has_one_graph() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = Residual()

        def forward(self, x: Any) -> Any:
            return self.part(self.part(x))

    found = graphs(Twice())

    assert [one.get("graph") for one in found[0]["nodes"]] == [None, 1, 1, None]
    assert len(found) == 2


def test_arguments_that_are_chosen_are_shown_by_their_labels() -> None:
    width = nni.choice("width", [8, 16])

    graph = root(nn.Sequential(MutableLinear(4, width, bias=False), MutableLinear(width * 2, 3)))

    assert node(graph, "0")["text"] == "Linear(in_features=4, out_features=width, bias=False)"
    assert node(graph, "1")["text"] == "Linear(in_features=(width * 2), out_features=3)"
    assert node(graph, "0")["labels"] == ["width"]


def test_layer_choice_has_its_candidates_and_label() -> None:
    choice = LayerChoice({"a": nn.ReLU(), "b": Residual()}, label="act")

    found = graphs(nn.Sequential(choice))

    assert node(found[0], "0") == {
        "name": "0",
        "kind": "layer",
        "text": "",
        "labels": ["act"],
        "candidates": [
            {"name": "a", "text": "ReLU()"},
            {"name": "b", "text": "Residual(Linear)", "graph": 1},
        ],
    }
    assert found[1]["name"] == "Residual"


def test_label_of_a_choice_comes_before_those_inside_of_its_candidates() -> None:
    inner = LayerChoice([nn.ReLU(), nn.Tanh()], label="inner")
    outer = LayerChoice([nn.Sequential(inner), nn.Identity()], label="outer")

    found = graphs(nn.Sequential(outer))

    assert node(found[0], "0")["labels"] == ["outer", "inner"]
    assert node(found[1], "0")["labels"] == ["inner"]


def test_input_choice_has_an_edge_for_each_value() -> None:
    class Skip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()
            self.skip = InputChoice(2, 1, label="skip")

        def forward(self, x: Any) -> Any:
            return self.skip([x, self.act(x)])

    graph = root(Skip())

    assert node(graph, "skip") == {
        "name": "skip", "kind": "inputs", "text": "of 2 inputs", "labels": ["skip"],
    }  # fmt: skip
    assert edges(graph) == {
        *(("x", "act"), ("x", "skip", "skip", 0), ("act", "skip", "skip", 1)),
        ("skip", "output"),
    }


def test_input_choice_whose_inputs_are_a_list_from_elsewhere_has_plain_edges() -> None:
    class Given(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.skip = InputChoice(2, 1, label="skip")

        def forward(self, parts: Any) -> Any:
            return self.skip(parts)

    assert edges(root(Given())) == {("parts", "skip"), ("skip", "output")}


def test_repetition_has_its_blocks_as_candidates() -> None:
    blocks = Repeat(lambda index: Residual() if index else nn.ReLU(), (1, 2), label="depth")

    found = graphs(nn.Sequential(blocks))

    assert node(found[0], "0") == {
        "name": "0",
        "kind": "depth",
        "text": "",
        "labels": ["depth"],
        "candidates": [
            {"name": "0", "text": "ReLU()"},
            {"name": "1", "text": "Residual(Linear)", "graph": 1},
        ],
    }


@pytest.mark.parametrize("depth", [2, nni.choice("half", [1, 2]) * 2])
def test_repetition_without_a_label_of_its_own_is_a_module(depth: Any) -> None:
    found = graphs(nn.Sequential(Repeat(nn.ReLU(), depth)))

    assert node(found[0], "0")["kind"] == "module"
    assert node(found[0], "0").get("labels", []) in ([], ["half"])


def test_cell_shows_which_tensors_its_operators_may_read() -> None:
    cell = Cell([nn.ReLU(), nn.Tanh()], 2, 2, num_predecessors=2, label="cell")

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = cell

        def forward(self, one: Any, other: Any) -> Any:
            return self.cell([one, other])

    inside = graphs(Net())[1]

    assert inside["name"] == "Cell"
    assert [(one["name"], one["kind"]) for one in inside["nodes"]] == [
        *(("input 0", "input"), ("input 1", "input")),
        *(("ops.0.0", "layer"), ("ops.0.1", "layer"), ("node 2", "function")),
        *(("ops.1.0", "layer"), ("ops.1.1", "layer"), ("node 3", "function")),
        *(("concatenation", "function"), ("output", "output")),
    ]
    assert node(inside, "ops.1.0")["labels"] == ["cell/op_3_0"]
    assert {one for one in edges(inside) if one[1] == "ops.1.0"} == {
        ("input 0", "ops.1.0", "cell/input_3_0", 0),
        ("input 1", "ops.1.0", "cell/input_3_0", 1),
        ("node 2", "ops.1.0", "cell/input_3_0", 2),
    }
    assert {one for one in edges(inside) if len(one) == 2} == {
        *(("ops.0.0", "node 2"), ("ops.0.1", "node 2"), ("ops.1.0", "node 3")),
        *(("ops.1.1", "node 3"), ("node 2", "concatenation"), ("node 3", "concatenation")),
        ("concatenation", "output"),
    }


def test_cell_shows_its_preprocessor_postprocessor_and_open_ends() -> None:
    class Post(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, merged: Any, processed: Any) -> Any:
            return self.act(merged)

    class Pre(nn.Module):
        def forward(self, tensors: Any) -> Any:
            return tensors

    cell = Cell(
        [nn.ReLU()], 1, merge_op="loose_end", preprocessor=Pre(), postprocessor=Post(), label="c"
    )

    inside = root(cell)

    assert node(inside, "input 0")["text"] == "Pre()"
    assert node(inside, "concatenation")["text"] == "of the nodes that no other one reads"
    assert node(inside, "postprocessor")["graph"] == 1
    assert ("concatenation", "postprocessor") in edges(inside)
    assert ("postprocessor", "output") in edges(inside)


def test_forward_that_cannot_be_followed_shows_the_modules_in_their_order() -> None:
    class Loop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.ReLU()
            self.rest = nn.ModuleList([nn.Tanh(), nn.ModuleDict({"a": nn.GELU()})])

        def forward(self, x: Any) -> Any:
            return self.first(x) if x.sum() > 0 else x

    graph = root(Loop())

    assert graph["traced"] is False
    assert [one["name"] for one in graph["nodes"]] == ["first", "rest.0", "rest.1.a"]
    assert graph["edges"] == []


def test_parts_of_tensors_and_sizes_are_passed_over() -> None:
    class Halves(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x: Any) -> Any:
            first, second = x.chunk(2)[0], x.view(x.size(0), x.shape[1])
            return self.act(first) + second

    graph = root(Halves())

    assert [one["name"] for one in graph["nodes"]] == ["x", "chunk", "view", "act", "add", "output"]
    assert ("chunk", "act") in edges(graph)


def test_own_tensor_of_a_module_is_a_node() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.ones(4))
            self.act = nn.ReLU()

        def forward(self, x: Any) -> Any:
            return self.act(x * self.scale)

    graph = root(Scaled())

    assert node(graph, "scale")["kind"] == "tensor"
    assert ("scale", "mul") in edges(graph)


def test_network_stays_as_it_was() -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()
            self.calls: list[Any] = []
            self.register_buffer("last", torch.zeros(1))

        def forward(self, x: Any) -> Any:
            self.calls.append(x)
            self.seen = x
            self.last = x
            return self.act(x)

    network = Counting()
    graphs(network)

    assert network.calls == []
    assert not hasattr(network, "seen")
    assert torch.equal(network.last, torch.zeros(1))
    assert network.training is True


def test_large_network_is_cut_from_the_inside(caplog: pytest.LogCaptureFixture) -> None:
    blocks = [nn.Sequential(*[Residual() for _ in range(10)]) for _ in range(100)]

    with caplog.at_level(logging.INFO):
        found = model_graph_of(nn.Sequential(*blocks))

    assert found is not None
    assert found["cut"] is True
    assert len(found["graphs"][0]["nodes"]) == 102
    n_nodes = sum(len(graph["nodes"]) for graph in found["graphs"])
    assert NODES_LIMIT - 100 < n_nodes <= NODES_LIMIT
    assert "about 1000 nodes" in caplog.text


class Wide(ModelSpace):
    def __init__(self, n_choices: int) -> None:
        super().__init__()
        acts = [nn.ReLU, nn.Tanh, nn.GELU, nn.SiLU]
        self.parts = nn.Sequential(
            *[LayerChoice([act() for act in acts], label=f"c{i}") for i in range(n_choices)]
        )

    def forward(self, x: Any) -> Any:
        return self.parts(x)


def test_message_has_no_more_parts_than_the_manager_takes() -> None:
    network = nn.Sequential(Wide(150), Wide(150), Wide(150), Wide(150))
    found = model_graph_of(network)
    assert found is not None
    config = config_pb2.ExperimentConfig(model_graph=to_value(found))

    parts = count_parts(config.SerializeToString(), config.DESCRIPTOR, 10**9)

    assert found["cut"] is True
    assert PARTS_LIMIT / 2 < parts <= PARTS_LIMIT + ONE_NODE_MORE


def test_network_whose_outermost_module_is_too_large_has_no_graph(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO):
        assert model_graph_of(nn.Sequential(*[nn.ReLU() for _ in range(2_500)])) is None

    assert "outermost module" in caplog.text


def test_more_edges_than_are_kept_cut_the_graph() -> None:
    class Dense(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()

        def forward(self, x: Any) -> Any:
            states = [x]
            for _ in range(80):
                states.append(torch.cat(states))
            return self.act(states[-1])

    found = model_graph_of(Dense())

    assert found is not None
    assert found["cut"] is True
    assert len(found["graphs"][0]["edges"]) == 2_000


def test_choice_without_a_graph_form_is_a_module() -> None:
    class Own(MutableModule):
        def __init__(self) -> None:
            super().__init__()
            self.act = nn.ReLU()
            self.add_mutable(nni.choice("own", [1, 2]))

        def freeze(self, sample: Any) -> Any:
            return self.act

        def forward(self, x: Any) -> Any:
            return self.act(x)

    graph = root(nn.Sequential(Own()))

    assert node(graph, "0")["kind"] == "module"
    assert node(graph, "0")["labels"] == ["own"]
