"""Form of graphs in JSON: `nni.dump` writes the values of their parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nni.mutable.record import marked, unmarked
from nni.nas.space.graph import Edge, Graph, GraphOwner, IllegalGraphError, Node


def recorded_graph(graph: Graph) -> dict[str, Any]:
    """Return a graph as a dictionary of ids, names, nodes and edges, from which it is restored.

    Args:
        graph: any graph.

    Returns:
        `inputs`, `outputs`, `nodes` by name, and `edges`. The input and the output node stand in
        the edges only.
    """
    recorded: dict[str, Any] = {
        "id": graph.id,
        "inputs": list(graph.input_names),
        "outputs": list(graph.output_names),
        "nodes": {node.name: _recorded_node(node) for node in graph.hidden_nodes},
        "edges": [
            {"head": [edge.head.name, edge.head_slot], "tail": [edge.tail.name, edge.tail_slot]}
            for edge in graph.edges
        ],
    }
    if graph.output_node.call is not None:
        recorded["call"] = marked(graph.output_node.call)
    if graph.python_name:
        recorded["python_name"] = graph.python_name
    return recorded


def restore_graph(model: GraphOwner, name: str, recorded: Mapping[str, Any]) -> Graph:
    """Add a recorded graph to a model and return it; raise if an edge has an unknown node.

    Args:
        model: model to add it to.
        name: name of the graph.
        recorded: its dictionary.

    Returns:
        The graph.

    Raises:
        IllegalGraphError: an edge has a node that does not exist.
    """
    graph = Graph(model, recorded["id"], name, recorded["inputs"], recorded["outputs"])
    graph.python_name = recorded.get("python_name", "")
    graph.output_node.call = unmarked(recorded.get("call"))
    for node_name, fields in recorded["nodes"].items():
        graph.hidden_nodes.append(_restored_node(graph, node_name, fields))
    known = {node.name: node for node in graph.nodes}
    for edge in recorded["edges"]:
        ends = [edge["head"], edge["tail"]]
        for end, _ in ends:
            if end not in known:
                raise IllegalGraphError(graph, f"an edge has the unknown node {end!r}")
        head, tail = ((known[end], slot) for end, slot in ends)
        graph.edges.append(Edge(head, tail))
    model.graphs[name] = graph
    return graph


def _recorded_node(node: Node) -> dict[str, Any]:
    fields = {
        "id": node.id,
        "operation": node.operation,
        "label": None if node.label is None else str(node.label),
        "python_name": node.python_name,
        "call": None if node.call is None else marked(node.call),
        "placement": None if node.placement is None else list(node.placement),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _restored_node(graph: Graph, name: str, fields: Mapping[str, Any]) -> Node:
    node = Node(graph, fields["id"], name, fields["operation"])
    node.label = fields.get("label")
    node.python_name = fields.get("python_name")
    node.call = unmarked(fields.get("call"))
    placement = fields.get("placement")
    node.placement = None if placement is None else (placement[0], placement[1])
    return node
