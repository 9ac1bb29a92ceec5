"""Form of graphs in JSON."""

import pytest

from nni.common.serializer import dump, load
from nni.nas.space import GraphModelSpace, IllegalGraphError
from nni.nas.space.graph_record import recorded_graph, restore_graph
from nni.nas.space.pytorch import PytorchGraphModelSpace
from tests.unit.sdk.nni.nas.graph_models import EverySpace


def small_model() -> GraphModelSpace:
    model = GraphModelSpace()
    graph = model.add_graph("_model", ["x", "y"], ["output"])
    total = graph.add_node("total", "Function.operator.add")
    total.update_label("sum")
    total.placement = ("host", 1)
    graph.add_edge((graph.input_node, 0), (total, -1))
    graph.add_edge((graph.input_node, 1), (total, -1))
    graph.add_edge((total, None), (graph.output_node, None))
    return model


def test_form_of_a_graph() -> None:
    recorded = recorded_graph(small_model().root_graph)

    assert recorded["inputs"] == ["x", "y"]
    assert list(recorded["nodes"]) == ["total"]
    assert recorded["nodes"]["total"]["label"] == "sum"
    assert recorded["edges"][0] == {"head": ["_inputs", 0], "tail": ["total", -1]}


@pytest.mark.claim("nas", 40)
@pytest.mark.parametrize(
    "model", [small_model(), PytorchGraphModelSpace.from_model(EverySpace())], ids=["small", "all"]
)
def test_model_keeps_nodes_edges_and_slots_in_json(model: GraphModelSpace) -> None:
    text = dump(model)
    loaded = load(text)

    assert dump(loaded) == text
    assert {name: recorded_graph(one) for name, one in loaded.graphs.items()}.keys() == (
        model.graphs.keys()
    )
    for name, graph in model.graphs.items():
        assert [repr(edge) for edge in loaded.graphs[name].edges] == [*map(repr, graph.edges)]
        assert [node.id for node in loaded.graphs[name].nodes] == [one.id for one in graph.nodes]


def test_new_ids_of_a_restored_model_are_free() -> None:
    model: GraphModelSpace = load(dump(small_model()))
    known = {node.id for node in model.get_nodes()} | {model.root_graph.id}

    assert model.new_id() not in known


def test_edge_with_an_unknown_node_is_refused() -> None:
    recorded = recorded_graph(small_model().root_graph)
    recorded["edges"][0]["tail"][0] = "nowhere"

    with pytest.raises(IllegalGraphError, match="unknown node 'nowhere'"):
        restore_graph(GraphModelSpace(), "_model", recorded)
