"""Graphs of models: nodes, edges, and their topology."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, Protocol

from nni.nas.space.graph_op import CELL, INPUTS, OUTPUTS, Cell, Operation

__all__ = ["Edge", "Graph", "IllegalGraphError", "Node"]

_INPUT_ID: Final = -1
_OUTPUT_ID: Final = -2
_ANY_SLOT: Final = -1
"""Slot of an input where the order of the inputs does not matter."""

Endpoint = tuple["Node", int | None]
"""Node and slot; None where there is only one."""


class IllegalGraphError(ValueError):
    """Error that a graph is malformed, or that a model cannot be written as a graph.

    Args:
        graph: the graph, or its name; None if there is none yet.
        reason: what is wrong, and what to do.

    Examples:
        >>> str(IllegalGraphError("_model", "the nodes form a cycle"))
        "graph '_model': the nodes form a cycle"
    """

    def __init__(self, graph: Graph | str | None, reason: str) -> None:
        name = graph.name if isinstance(graph, Graph) else graph
        super().__init__(reason if name is None else f"graph {name!r}: {reason}")


class GraphOwner(Protocol):
    """Interface of models that graphs belong to.

    Examples:
        >>> from nni.nas.space import GraphModelSpace
        >>> owner: GraphOwner = GraphModelSpace()
        >>> owner.graphs
        {}
    """

    graphs: dict[str, Graph]
    """Graphs by name."""

    def new_id(self) -> int:
        """Return an id that no node or graph of the model has.

        Returns:
            A positive number.
        """

    def fork(self) -> Any:  # noqa: ANN401 - the model's own class
        """Return a copy of the model, with the same names and ids.

        Returns:
            The copy.
        """


class Node:
    """Operation inside a graph; `Graph.add_node` makes one.

    Args:
        graph: graph of the node.
        node_id: id in the model: nodes of equal ids in two models stand for the same thing.
        name: name in the graph.
        operation: what it computes.

    Attributes:
        graph: graph of the node.
        id: id in the model.
        name: name in the graph.
        operation: what it computes.
        python_name: name of its module in the model; None if it is no module of the model.
        label: name by which mutators find it; nodes of one label are changed together.
        call: arguments of the call, as templates: a list `args` and a dict `kwargs`. None: the
            inputs in the order of their slots.
        placement: host and index of the GPU of the node; None if it is that of the model.

    Examples:
        >>> from nni.nas.space import GraphModelSpace
        >>> graph = GraphModelSpace().add_graph("_model", ["x"])
        >>> node = graph.add_node("relu", "Function.torch.relu")
        >>> edge = graph.add_edge((graph.input_node, 0), (node, None))
        >>> node.predecessors
        [Node('_inputs', '_inputs')]
    """

    def __init__(self, graph: Graph, node_id: int, name: str, operation: Operation) -> None:
        self.graph = graph
        self.id = node_id
        self.name = name
        self.operation = operation
        self.python_name: str | None = None
        self.label: str | None = None
        self.call: dict[str, Any] | None = None
        self.placement: tuple[str, int] | None = None

    @property
    def incoming_edges(self) -> list[Edge]:
        """Edges that end at this node, in the order of their insertion."""
        return [edge for edge in self.graph.edges if edge.tail is self]

    @property
    def outgoing_edges(self) -> list[Edge]:
        """Edges that begin at this node, in the order of their insertion."""
        return [edge for edge in self.graph.edges if edge.head is self]

    @property
    def predecessors(self) -> list[Node]:
        """Nodes whose outputs are inputs of this one, each once."""
        return list(dict.fromkeys(edge.head for edge in self.incoming_edges))

    @property
    def successors(self) -> list[Node]:
        """Nodes that this one is an input of, each once."""
        return list(dict.fromkeys(edge.tail for edge in self.outgoing_edges))

    @property
    def cell(self) -> Graph:
        """Graph that the node represents; raises if it represents none.

        Raises:
            IllegalGraphError: the node stands for no graph.
        """
        if not isinstance(self.operation, Cell):
            raise IllegalGraphError(
                self.graph, f"node {self.name!r} is a {self.operation.type!r}, no {CELL!r}"
            )
        return self.graph.model.graphs[self.operation.cell_name]

    def update_operation(
        self, operation_or_type: Operation | str, parameters: Mapping[str, Any] | None = None
    ) -> None:
        """Replace the operation; the edges stay.

        Args:
            operation_or_type: operation, or the type of a new one.
            parameters: parameters of the new one; only with a type.

        Raises:
            TypeError: parameters are given with an operation.
        """
        self.operation = _operation(operation_or_type, parameters)

    def update_label(self, label: str | None) -> None:
        """Replace the label.

        Args:
            label: the new one; None for none.
        """
        self.label = label

    def specialize_cell(self) -> Graph:
        """Copy the graph that the node represents; let it represent the copy; return the copy.

        Other nodes keep the original, so that the copy can be changed for this node alone.

        Returns:
            The copy.
        """
        copied = self.cell.copy_as(_unused(self.cell.name, self.graph.model.graphs))
        self.operation = Operation.new(CELL, self.operation.parameters, copied.name)
        return copied

    def remove(self) -> None:
        """Remove the node and its edges from the graph.

        Raises:
            IllegalGraphError: it is the input or output node.
        """
        self.graph.del_node(self)

    def __repr__(self) -> str:
        return f"Node({self.name!r}, {self.operation.type!r})"


class Edge:
    """Tensor that flows from one node to another; `Graph.add_edge` makes one.

    Args:
        head: node that computes it, and which of its outputs it is.
        tail: node that takes it, and which of its inputs it is.

    Attributes:
        head: node that computes the tensor.
        head_slot: index of the output; None if the node has only one.
        tail: node that takes it.
        tail_slot: index of the input; None if there is only one, -1 if the order does not matter.

    Examples:
        >>> from nni.nas.space import GraphModelSpace
        >>> graph = GraphModelSpace().add_graph("_model", ["x"])
        >>> graph.add_edge((graph.input_node, 0), (graph.output_node, None))
        Edge('_inputs'[0] -> '_outputs'[None])
    """

    def __init__(self, head: Endpoint, tail: Endpoint) -> None:
        self.head, self.head_slot = head
        self.tail, self.tail_slot = tail

    @property
    def graph(self) -> Graph:
        """Graph of the edge."""
        return self.head.graph

    def remove(self) -> None:
        """Remove the edge from its graph."""
        self.graph.del_edge(self)

    def __repr__(self) -> str:
        head, tail = self.head.name, self.tail.name
        return f"Edge({head!r}[{self.head_slot}] -> {tail!r}[{self.tail_slot}])"


class Graph:
    """Topology of a model, or of a module inside; `GraphModelSpace.add_graph` makes one.

    Args:
        model: model that the graph belongs to.
        graph_id: id in the model: graphs of equal ids in two models stand for the same thing.
        name: name in the model.
        input_names: names of the inputs.
        output_names: names of the outputs.

    Attributes:
        model: model that the graph belongs to.
        id: id in the model.
        name: name in the model.
        input_names: names of the inputs.
        output_names: names of the outputs.
        input_node: node whose outputs are the inputs of the graph.
        output_node: node whose inputs are the outputs of the graph.
        hidden_nodes: all other nodes, in the order of their insertion.
        edges: edges, in the order of their insertion.
        python_name: name of the module that the graph describes, in the model; empty for the model.

    Examples:
        >>> from nni.nas.space import GraphModelSpace
        >>> graph = GraphModelSpace().add_graph("_model", ["x"])
        >>> relu = graph.add_node("relu", "Function.torch.relu")
        >>> first = graph.add_edge((graph.input_node, 0), (relu, None))
        >>> last = graph.add_edge((relu, None), (graph.output_node, None))
        >>> tanh = graph.insert_node_on_edge(last, "tanh", "Function.torch.tanh")
        >>> [node.name for node in graph.topo_sort()]
        ['_inputs', 'relu', 'tanh', '_outputs']
    """

    def __init__(
        self,
        model: GraphOwner,
        graph_id: int,
        name: str,
        input_names: Iterable[str] = (),
        output_names: Iterable[str] = (),
    ) -> None:
        self.model = model
        self.id = graph_id
        self.name = name
        self.input_names = list(input_names)
        self.output_names = list(output_names)
        self.input_node = Node(self, _INPUT_ID, INPUTS, Operation.new(INPUTS))
        self.output_node = Node(self, _OUTPUT_ID, OUTPUTS, Operation.new(OUTPUTS))
        self.hidden_nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.python_name = ""

    @property
    def nodes(self) -> list[Node]:
        """Input node, output node, and all others."""
        return [self.input_node, self.output_node, *self.hidden_nodes]

    def add_node(
        self,
        name: str,
        operation_or_type: Operation | str,
        parameters: Mapping[str, Any] | None = None,
    ) -> Node:
        """Add a node without edges, with a number in its name if that is taken; return it.

        Args:
            name: name of the node; a number is appended if another node has it.
            operation_or_type: operation, or the type of a new one.
            parameters: parameters of the new one; only with a type.

        Returns:
            The node.

        Raises:
            TypeError: parameters are given with an operation.
        """
        operation = _operation(operation_or_type, parameters)
        free = _unused(name, {node.name for node in self.nodes})
        node = Node(self, self.model.new_id(), free, operation)
        self.hidden_nodes.append(node)
        return node

    def insert_node_on_edge(
        self,
        edge: Edge,
        name: str,
        operation_or_type: Operation | str,
        parameters: Mapping[str, Any] | None = None,
    ) -> Node:
        """Add a node in the middle of an edge, which is replaced by two; return the node.

        Args:
            edge: edge of this graph.
            name: as for `add_node`, and so the following.
            operation_or_type: operation, or the type of a new one.
            parameters: parameters of the new one.

        Returns:
            The node.
        """
        node = self.add_node(name, operation_or_type, parameters)
        position = self.edges.index(edge)
        first = Edge((edge.head, edge.head_slot), (node, None))
        self.edges[position : position + 1] = [
            first,
            Edge((node, None), (edge.tail, edge.tail_slot)),
        ]
        return node

    def add_edge(self, head: Endpoint, tail: Endpoint) -> Edge:
        """Add an edge between nodes of this graph, else raise; return it.

        Args:
            head: node that computes the tensor, and index of the output; None if there is one.
            tail: node that takes it, and index of the input; None if there is one, -1 if the order
                does not matter.

        Returns:
            The edge.

        Raises:
            IllegalGraphError: a node belongs to another graph.
        """
        for node, _ in (head, tail):
            if node.graph is not self:
                raise IllegalGraphError(
                    self, f"node {node.name!r} belongs to graph {node.graph.name!r}"
                )
        edge = Edge(head, tail)
        self.edges.append(edge)
        return edge

    def del_edge(self, edge: Edge) -> None:
        """Remove an edge.

        Args:
            edge: edge of this graph.
        """
        self.edges.remove(edge)

    def del_node(self, node: Node) -> None:
        """Remove a node and its edges; raise for the input, the output or another graph's.

        Args:
            node: hidden node of this graph.

        Raises:
            IllegalGraphError: it is the input or output node.
        """
        if node not in self.hidden_nodes:
            raise IllegalGraphError(self, f"node {node.name!r} cannot be removed")
        self.hidden_nodes.remove(node)
        self.edges = [edge for edge in self.edges if node not in {edge.head, edge.tail}]

    def get_node_by_id(self, node_id: int) -> Node | None:
        """Return the graph's node with an id; None if there is none.

        Args:
            node_id: id; -1 of the input node, -2 of the output node.

        Returns:
            The node; None if there is none.
        """
        return next((node for node in self.nodes if node.id == node_id), None)

    def get_node_by_name(self, name: str) -> Node | None:
        """Return the graph's node with a name; None if there is none.

        Args:
            name: name in this graph.

        Returns:
            The node; None if there is none.
        """
        return next((node for node in self.nodes if node.name == name), None)

    def get_nodes_by_type(self, operation_type: str) -> list[Node]:
        """Return the nodes whose operation has a type.

        Args:
            operation_type: type, with its prefix.

        Returns:
            The nodes of this graph, without those of cells.
        """
        return [node for node in self.hidden_nodes if node.operation.type == operation_type]

    def get_nodes_by_label(self, label: str) -> list[Node]:
        """Return the nodes of a label.

        Args:
            label: label.

        Returns:
            The nodes of this graph, without those of cells.
        """
        return [node for node in self.hidden_nodes if node.label == label]

    def topo_sort(self) -> list[Node]:
        """Return all nodes so that each follows its predecessors; raise if they form a cycle.

        Returns:
            The input node first, the output node last, the others as they were inserted as far as
            the edges permit.

        Raises:
            IllegalGraphError: the nodes form a cycle.
        """
        before: dict[Node, list[Node]] = {node: [] for node in self.nodes}
        for edge in self.edges:
            before[edge.tail].append(edge.head)
        done: dict[Node, None] = {self.input_node: None}
        for node in (*self.hidden_nodes, self.output_node):
            self._visit(node, before, done, set())
        return [node for node in done if node is not self.output_node] + [self.output_node]

    def _visit(
        self,
        node: Node,
        before: Mapping[Node, list[Node]],
        done: dict[Node, None],
        open_nodes: set[Node],
    ) -> None:
        if node in done:
            return
        if node in open_nodes:
            raise IllegalGraphError(self, f"the nodes form a cycle through {node.name!r}")
        open_nodes.add(node)
        for predecessor in before[node]:
            self._visit(predecessor, before, done, open_nodes)
        done[node] = None

    def fork(self) -> Graph:
        """Return the graph of the same name in a copy of the model.

        Returns:
            The graph.
        """
        graphs: dict[str, Graph] = self.model.fork().graphs
        return graphs[self.name]

    def copy_as(self, name: str) -> Graph:
        """Add a copy of this graph, with new ids, to its model; return it.

        Args:
            name: name of the copy.

        Returns:
            The copy; its nodes have new ids.
        """
        copied = self.copy_to(self.model, name)
        copied.id = self.model.new_id()
        for node in copied.hidden_nodes:
            node.id = self.model.new_id()
        return copied

    def copy_to(self, model: GraphOwner, name: str | None = None) -> Graph:
        """Add a copy of this graph, with the same ids, to a model; return it.

        Args:
            model: model to add it to.
            name: name of the copy; None for that of this graph.

        Returns:
            The copy.
        """
        copied = Graph(model, self.id, name or self.name, self.input_names, self.output_names)
        copied.python_name = self.python_name
        copies = {self.input_node: copied.input_node, self.output_node: copied.output_node}
        for node in self.hidden_nodes:
            copies[node] = Node(copied, node.id, node.name, node.operation)
            copied.hidden_nodes.append(copies[node])
        for node, copy in copies.items():
            vars(copy).update(
                python_name=node.python_name,
                label=node.label,
                call=node.call,
                placement=node.placement,
            )
        copied.edges = [
            Edge((copies[edge.head], edge.head_slot), (copies[edge.tail], edge.tail_slot))
            for edge in self.edges
        ]
        model.graphs[copied.name] = copied
        return copied

    def __repr__(self) -> str:
        return f"Graph({self.name!r}, {len(self.hidden_nodes)} nodes)"


def inputs_of(node: Node) -> dict[int, Edge]:
    """Return the edge of each input slot of a node in order; raise if two have the same slot.

    An edge without a slot, or whose order does not matter, takes the first free one.

    Args:
        node: any node.

    Raises:
        IllegalGraphError: two edges have one slot.
    """
    found: dict[int, Edge] = {}
    free = [edge for edge in node.incoming_edges if edge.tail_slot in {None, _ANY_SLOT}]
    for edge in node.incoming_edges:
        if edge.tail_slot is None or edge.tail_slot == _ANY_SLOT:
            continue
        if edge.tail_slot in found:
            raise IllegalGraphError(
                node.graph, f"node {node.name!r} has two inputs in slot {edge.tail_slot}"
            )
        found[edge.tail_slot] = edge
    for edge in free:
        slot = next(one for one in range(len(found) + 1) if one not in found)
        found[slot] = edge
    return dict(sorted(found.items()))


def _operation(
    operation_or_type: Operation | str, parameters: Mapping[str, Any] | None
) -> Operation:
    if isinstance(operation_or_type, str):
        return Operation.new(operation_or_type, parameters)
    if parameters:
        raise TypeError("parameters can only be given with a type, the operation has its own")
    return operation_or_type


def _unused(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken: with a number at its end if need be."""
    names = set(taken)
    free, number = name, 0
    while free in names:
        number += 1
        free = f"{name}_{number}"
    return free
