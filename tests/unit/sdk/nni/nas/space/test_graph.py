"""Topology of graphs."""

import pytest

from nni.nas.space import Graph, GraphModelSpace, IllegalGraphError
from nni.nas.space.graph import inputs_of
from nni.nas.space.graph_op import Operation

RELU = "Function.torch.relu"


@pytest.fixture
def graph() -> Graph:
    """Return a chain: first, second."""
    made = GraphModelSpace().add_graph("_model", ["x"], ["output"])
    first, second = made.add_node("first", RELU), made.add_node("second", RELU, {"n": 2})
    made.add_edge((made.input_node, 0), (first, None))
    made.add_edge((first, None), (second, None))
    made.add_edge((second, None), (made.output_node, None))
    return made


def names(graph: Graph) -> list[str]:
    return [node.name for node in graph.topo_sort()]


def test_input_and_output_nodes_have_fixed_ids(graph: Graph) -> None:
    assert graph.get_node_by_id(-1) is graph.input_node
    assert graph.get_node_by_id(-2) is graph.output_node


def test_neighbours_follow_from_the_edges(graph: Graph) -> None:
    first, second = graph.hidden_nodes

    assert first.successors == [second]
    assert second.predecessors == [first]
    assert [edge.head for edge in second.incoming_edges] == [first]
    assert [edge.tail for edge in second.outgoing_edges] == [graph.output_node]


def test_node_is_inserted_between_the_ends_of_an_edge(graph: Graph) -> None:
    graph.insert_node_on_edge(graph.edges[1], "middle", RELU)

    assert names(graph) == ["_inputs", "first", "middle", "second", "_outputs"]


def test_removed_node_takes_its_edges_along(graph: Graph) -> None:
    graph.hidden_nodes[0].remove()

    assert [repr(edge) for edge in graph.edges] == ["Edge('second'[None] -> '_outputs'[None])"]


def test_removed_edge_leaves_its_nodes(graph: Graph) -> None:
    graph.edges[1].remove()

    assert len(graph.hidden_nodes) == 2
    assert graph.hidden_nodes[1].predecessors == []


def test_input_node_cannot_be_removed(graph: Graph) -> None:
    with pytest.raises(IllegalGraphError, match="'_inputs' cannot be removed"):
        graph.input_node.remove()


def test_cycle_is_refused(graph: Graph) -> None:
    first, second = graph.hidden_nodes
    graph.add_edge((second, None), (first, 1))

    with pytest.raises(IllegalGraphError, match="form a cycle through 'first'"):
        graph.topo_sort()


def test_order_of_insertion_gives_way_to_edges(graph: Graph) -> None:
    late = graph.add_node("late", RELU)
    graph.add_edge((late, None), (graph.hidden_nodes[0], 1))

    assert names(graph) == ["_inputs", "late", "first", "second", "_outputs"]


def test_edge_to_a_node_of_another_graph_is_refused(graph: Graph) -> None:
    other = graph.model.add_graph("other").add_node("stranger", RELU)  # type: ignore[attr-defined]

    with pytest.raises(IllegalGraphError, match="'stranger' belongs to graph 'other'"):
        graph.add_edge((graph.input_node, 0), (other, None))


def test_names_of_nodes_are_unique(graph: Graph) -> None:
    assert graph.add_node("first", RELU).name == "first_1"


def test_nodes_are_found_by_name_type_label_and_id(graph: Graph) -> None:
    second = graph.hidden_nodes[1]
    second.update_label("here")

    assert graph.get_node_by_name("second") is second
    assert graph.get_node_by_id(second.id) is second
    assert graph.get_nodes_by_label("here") == [second]
    assert graph.get_nodes_by_type(RELU) == graph.hidden_nodes
    assert graph.get_node_by_name("third") is None


def test_operation_is_replaced_by_type_or_by_operation(graph: Graph) -> None:
    first, second = graph.hidden_nodes
    first.update_operation("Function.torch.tanh", {"n": 1})
    second.update_operation(first.operation)

    assert second.operation.parameters == {"n": 1}
    with pytest.raises(TypeError, match="parameters can only be given with a type"):
        second.update_operation(first.operation, {"n": 2})


def test_graph_of_a_node_that_is_no_cell_is_refused(graph: Graph) -> None:
    with pytest.raises(IllegalGraphError, match=r"is a 'Function\.torch\.relu', no '_cell'"):
        _ = graph.hidden_nodes[0].cell


def test_specialized_cell_is_a_copy_for_one_node() -> None:
    model = GraphModelSpace()
    root, block = model.add_graph("_model"), model.add_graph("block", ["x"])
    block.add_node("inner", RELU)
    first = root.add_node("first", Operation.new("_cell", cell_name="block"))
    second = root.add_node("second", Operation.new("_cell", cell_name="block"))

    copied = first.specialize_cell()
    copied.hidden_nodes[0].update_operation("Function.torch.tanh")

    assert first.cell is copied
    assert second.cell is block
    assert block.hidden_nodes[0].operation.type == RELU
    assert copied.hidden_nodes[0].id != block.hidden_nodes[0].id


def test_fork_is_the_same_graph_in_a_copy_of_the_model(graph: Graph) -> None:
    forked = graph.fork()
    forked.hidden_nodes[0].remove()

    assert forked.id == graph.id
    assert len(graph.hidden_nodes) == 2


def test_inputs_without_an_order_take_free_slots(graph: Graph) -> None:
    first, second = graph.hidden_nodes
    total = graph.add_node("total", "Function.operator.add")
    graph.add_edge((first, None), (total, -1))
    graph.add_edge((second, None), (total, 0))

    assert {slot: edge.head.name for slot, edge in inputs_of(total).items()} == {
        0: "second",
        1: "first",
    }


def test_two_inputs_of_one_slot_are_refused(graph: Graph) -> None:
    first, second = graph.hidden_nodes
    graph.add_edge((graph.input_node, 0), (second, 0))
    graph.add_edge((first, None), (second, 0))

    with pytest.raises(IllegalGraphError, match="two inputs in slot 0"):
        inputs_of(second)
