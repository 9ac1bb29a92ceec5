"""Graphs as programs."""

import pytest

from nni.nas.space import Graph, GraphModelSpace, IllegalGraphError, Node
from nni.nas.space.graph_op import InputSlot, Operation
from nni.nas.space.pytorch.program import ProgramVariable, cells_of, plain_name, program_of

RELU = "__torch__.torch.nn.ReLU"


@pytest.fixture
def graph() -> Graph:
    return GraphModelSpace().add_graph("_model", ["x", "y"], ["output"])


def connect(graph: Graph, *names: str, slot: int = 0) -> None:
    """Add edges along nodes, from an input to the output."""
    nodes = [node for node in graph.hidden_nodes if node.name in names]
    head: tuple[Node, int | None] = (graph.input_node, slot)
    for node in nodes:
        graph.add_edge(head, (node, None))
        head = (node, None)
    graph.add_edge(head, (graph.output_node, None))


def test_inputs_without_a_template_are_arguments_in_order(graph: Graph) -> None:
    total = graph.add_node("total", "Function.operator.add")
    graph.add_edge((graph.input_node, 1), (total, 1))
    graph.add_edge((graph.input_node, 0), (total, 0))
    graph.add_edge((total, None), (graph.output_node, None))

    program = program_of(graph)

    assert program.statements[0].args == [ProgramVariable("x"), ProgramVariable("y")]
    assert program.result == ProgramVariable("total")


def test_template_places_inputs(graph: Graph) -> None:
    template = {"args": [[InputSlot(0), InputSlot(1)], 1], "kwargs": {}}
    cat = graph.add_node("cat", "Function.torch.cat", template)
    graph.add_edge((graph.input_node, 0), (cat, 0))
    graph.add_edge((graph.input_node, 1), (cat, 1))
    graph.add_edge((cat, None), (graph.output_node, None))

    assert program_of(graph).statements[0].args == [[ProgramVariable("x"), ProgramVariable("y")], 1]


def test_output_of_a_node_with_several_is_one_item(graph: Graph) -> None:
    template = {"args": [InputSlot(0), 2], "kwargs": {}}
    node = graph.add_node("chunk", "Function.torch.chunk", template)
    graph.add_edge((graph.input_node, 0), (node, None))
    graph.add_edge((node, 1), (graph.output_node, None))

    assert program_of(graph).result == ProgramVariable("chunk", 1)


def test_variables_do_not_hide_the_functions_that_are_called(graph: Graph) -> None:
    graph.add_node("scale", "Function.scale.scale")
    graph.add_node("max", RELU)
    graph.add_node("last", "Function.builtins.max")
    connect(graph, "scale", "max", "last")

    targets = [statement.target for statement in program_of(graph).statements]

    assert targets == ["scale_1", "max_1", "last"]


def test_nodes_of_one_module_share_a_member(graph: Graph) -> None:
    for _ in range(2):
        graph.add_node("act", RELU).python_name = "act"
    connect(graph, "act", "act_1")

    assert list(program_of(graph).members) == ["act"]


def test_node_that_a_mutator_has_changed_gets_a_member_of_its_own(graph: Graph) -> None:
    for _ in range(2):
        graph.add_node("act", RELU).python_name = "act"
    graph.hidden_nodes[1].update_operation("__torch__.torch.nn.Tanh")
    connect(graph, "act", "act_1")

    assert list(program_of(graph).members) == ["act", "act_1"]


def test_names_are_identifiers_that_hide_nothing(graph: Graph) -> None:
    assert plain_name("body.0.conv") == "body__0__conv"
    assert [plain_name(name) for name in ("0", "class", "torch", "a-b")] == [
        *("_0", "_class", "_torch", "a_b")
    ]


def test_variable_does_not_hide_an_input(graph: Graph) -> None:
    graph.add_node("x", "Function.torch.relu")
    connect(graph, "x")

    assert program_of(graph).statements[0].target == "x_1"


def test_missing_input_is_named(graph: Graph) -> None:
    graph.add_node(
        "act", "Function.torch.add", {"args": [InputSlot(0), InputSlot(1)], "kwargs": {}}
    )
    connect(graph, "act")

    with pytest.raises(IllegalGraphError, match="node 'act' has no input 1"):
        program_of(graph)


def test_input_that_the_graph_does_not_have_is_refused(graph: Graph) -> None:
    connect(graph, slot=2)

    with pytest.raises(IllegalGraphError, match="the graph has no input 2"):
        program_of(graph)


def test_graphs_that_a_program_needs_are_listed_once(graph: Graph) -> None:
    for _ in range(2):
        graph.add_node("block", Operation.new("_cell", cell_name="block"))
    connect(graph, "block", "block_1")

    assert cells_of(program_of(graph)) == ["block"]
