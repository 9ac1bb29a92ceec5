"""Shapes of the tensors of a graph model, in the attributes of its nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from nni.nas.space.graph_op import Operation
from nni.nas.space.graph_space import ROOT_GRAPH, GraphModelSpace
from nni.nas.space.pytorch.network import GraphNetwork, build_network
from nni.nas.space.pytorch.program import Program

INPUT_SHAPE: Final = "input_shape"
"""Attribute with the shapes of the inputs of a node, a list."""
OUTPUT_SHAPE: Final = "output_shape"
"""Attribute with the shapes of the outputs of a node, a list."""


def add_shapes(
    model: GraphModelSpace, programs: dict[str, Program], dummy_input: Sequence[int]
) -> None:
    """Add input and output shapes to the nodes of a model, in place, by a run without data.

    Args:
        model: graphs without choices.
        programs: their programs.
        dummy_input: shape of the input.

    Raises:
        RuntimeError: the shapes of two nodes do not fit each other.
    """
    with torch.device("meta"), torch.no_grad():
        network = build_network(programs, ROOT_GRAPH).eval()  # one example suffices for BatchNorm
        for module in network.modules():
            if isinstance(module, GraphNetwork):
                module.observer = _observer(model, module.graph_name)
        network(torch.empty(list(dummy_input)))


def _observer(model: GraphModelSpace, graph_name: str) -> Callable[[str, Any, Any], None]:
    nodes = {node.name: node for node in model.graphs[graph_name].hidden_nodes}

    def observe(name: str, inputs: Any, output: Any) -> None:  # noqa: ANN401 - of any module
        operation = nodes[name].operation
        shapes = {INPUT_SHAPE: _shapes(inputs), OUTPUT_SHAPE: _shapes(output)}
        nodes[name].operation = Operation.new(
            operation.type,
            operation.parameters,
            getattr(operation, "cell_name", None),
            {**operation.attributes, **shapes},
        )

    return observe


def _shapes(value: Any) -> list[list[int]]:  # noqa: ANN401 - of any module
    if isinstance(value, torch.Tensor):
        return [list(value.shape)]
    if isinstance(value, list | tuple):
        return [shape for one in value for shape in _shapes(one)]
    if isinstance(value, dict):
        return _shapes(list(value.values()))
    return []
