"""One model of several: graphs beside each other, which share their inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from nni.nas.space import Graph, GraphModelSpace, ModelStatus, Node
from nni.nas.space.graph_op import FUNCTION_PREFIX, Cell, Operation
from nni.nas.space.graph_space import ROOT_GRAPH

_RESULT: Final = f"{FUNCTION_PREFIX}{__name__}.result"
"""Type of the nodes that collect what one model returns."""


def can_share_inputs(one: GraphModelSpace, other: GraphModelSpace) -> bool:
    """Return whether two models have the same number of inputs.

    Args:
        one: frozen model.
        other: frozen model.
    """
    return len(one.root_graph.input_names) == len(other.root_graph.input_names)


def merged_model(models: Sequence[GraphModelSpace]) -> GraphModelSpace:
    """Return a new frozen model that computes several on one input; it returns their outputs.

    Inputs are shared, so that a batch is loaded once. Names of nodes, graphs and modules begin with
    `M_` and the position of their model; parameters are never shared.

    Args:
        models: frozen models that take the same inputs; they stay as they are.

    Returns:
        A frozen model with the evaluator of the first; its sample is that of each by position.

    Raises:
        ValueError: there are no models, or they take different inputs.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.nas.space import GraphModelSpace
        >>> nets = [nn.Sequential(nn.Linear(4, width)) for width in (2, 3)]
        >>> models = [GraphModelSpace.from_model(net).freeze({}) for net in nets]
        >>> [tuple(one.shape) for one in merged_model(models).build_model()(torch.ones(5, 4))]
        [(5, 2), (5, 3)]
    """
    if not models:
        raise ValueError("models must not be empty")
    first = models[0]
    for other in models[1:]:
        if not can_share_inputs(first, other):
            raise ValueError(
                f"models must take the same inputs, got {first.root_graph.input_names} and "
                f"{other.root_graph.input_names}"
            )
    merged = type(first)(first.evaluator)
    root = merged.add_graph(ROOT_GRAPH, first.root_graph.input_names, ["outputs"])
    for position, model in enumerate(models):
        _add(merged, root, model, position)
    merged.sample = {str(position): model.sample for position, model in enumerate(models)}
    merged.status = ModelStatus.Frozen
    return merged


def _add(merged: GraphModelSpace, root: Graph, model: GraphModelSpace, position: int) -> None:
    """Copy a model's graphs, prefixed, to a merged model; its output becomes one of several."""
    prefix = f"M_{position}"
    for name, graph in model.graphs.items():
        if name == ROOT_GRAPH:
            _copy_nodes(graph, root, prefix)
        else:
            copied = merged.add_graph(f"{prefix}_{name}", graph.input_names, graph.output_names)
            copied.python_name = f"{prefix}.{graph.python_name}"
            _copy_nodes(graph, copied, prefix)


def _copy_nodes(source: Graph, target: Graph, prefix: str) -> None:
    is_root = target.name == ROOT_GRAPH
    copies: dict[Node, Node] = {source.input_node: target.input_node}
    for node in source.hidden_nodes:
        copies[node] = target.add_node(f"{prefix}_{node.name}", _prefixed(node.operation, prefix))
        copies[node].python_name = f"{prefix}.{node.python_name or node.name}"
        copies[node].call = node.call
    if is_root:
        output = target.add_node(
            f"{prefix}_output", "Function.nni.nas.execution.cgo.merging.result"
        )
        copies[source.output_node] = output
        call = source.output_node.call
        if call is not None:
            output.operation = Operation.new(output.operation.type, call)
        count = len(target.output_node.incoming_edges)
        target.add_edge((output, None), (target.output_node, count))
    else:
        copies[source.output_node] = target.output_node
        target.output_node.call = source.output_node.call
    for edge in source.edges:
        target.add_edge((copies[edge.head], edge.head_slot), (copies[edge.tail], edge.tail_slot))


def _prefixed(operation: Operation, prefix: str) -> Operation:
    if not isinstance(operation, Cell):
        return operation
    return Operation.new(
        operation.type,
        operation.parameters,
        f"{prefix}_{operation.cell_name}",
        operation.attributes,
    )


def result(*outputs: object) -> object:
    """Return the return value of a model: its output, or a tuple of several.

    Args:
        *outputs: outputs of the model.
    """
    return outputs[0] if len(outputs) == 1 else outputs
