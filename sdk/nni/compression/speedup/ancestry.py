"""Layers before and after a value in a recorded run, and the layers of attention."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Final

from nni.compression.speedup.graph import Node, OperationGraph

AttentionLayers = tuple[str, str, str, str]
"""Names of three input projections and of the output projection."""

_PRODUCTS: Final = ("aten.bmm", "aten.baddbmm", "aten._scaled_dot_product")
_INPUT_PROJECTIONS: Final = 3


def nearest_layers(graph: OperationGraph, value: int, names: Container[str]) -> list[str]:
    """Return the layers from which a value is computed without another layer between.

    Args:
        graph: A recorded run.
        value: Index of the value.
        names: Names of the layers.

    Returns:
        Names in the order in which the layers ran.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup.ancestry import nearest_layers
        >>> from nni.compression.speedup.recording import capture
        >>> graph = capture(nn.Sequential(nn.Linear(3, 2), nn.ReLU()), torch.zeros(1, 3))
        >>> nearest_layers(graph, graph.outputs[0], {"0"})
        ['0']
    """
    writers = _nodes_by_value(graph, lambda node: node.outputs)
    return _first_layers(value, names, writers, Node.inputs)


def nearest_readers(graph: OperationGraph, value: int, names: Container[str]) -> list[str]:
    """Return the layers that read a value without another layer between.

    Args:
        graph: A recorded run.
        value: Index of the value.
        names: Names of the layers.

    Returns:
        Names in the order in which the layers ran.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup.ancestry import nearest_readers
        >>> from nni.compression.speedup.recording import capture
        >>> graph = capture(nn.Sequential(nn.ReLU(), nn.Linear(3, 2)), torch.zeros(1, 3))
        >>> nearest_readers(graph, graph.inputs[0], {"1"})
        ['1']
    """
    readers = _nodes_by_value(graph, Node.inputs)
    return _first_layers(value, names, readers, lambda node: node.outputs)


def _nodes_by_value(
    graph: OperationGraph, values: Callable[[Node], Iterable[int]]
) -> dict[int, list[Node]]:
    found: dict[int, list[Node]] = {}
    for node in graph.nodes:
        for value in values(node):
            found.setdefault(value, []).append(node)
    return found


def _first_layers(
    start: int,
    names: Container[str],
    nodes: dict[int, list[Node]],
    onward: Callable[[Node], Iterable[int]],
) -> list[str]:
    """Return the first layers on all ways from a value over nodes, in running order."""
    found: dict[str, int] = {}
    pending, seen = [start], {start}
    while pending:
        for node in nodes.get(pending.pop(), []):
            if node.module in names:
                found.setdefault(node.module, node.index)
                continue
            new = set(onward(node)) - seen
            seen |= new
            pending += new
    return sorted(found, key=found.__getitem__)


def attention_layers(graph: OperationGraph, names: Container[str]) -> list[AttentionLayers]:
    """Return names of query, key, value and output layers of each attention that has such.

    An attention is a product of activations that is computed from three layers and read by one.

    Args:
        graph: A recorded run.
        names: Names of all Linear layers.

    Returns:
        Names of the projections of query, key and value, in the order in which they ran, and of
        the output projection.

    Examples:
        >>> import torch
        >>> from torch import nn
        >>> from nni.compression.speedup.ancestry import attention_layers
        >>> from nni.compression.speedup.recording import capture
        >>> class Attention(nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.q, self.k, self.v, self.out = (nn.Linear(4, 4) for _ in range(4))
        ...     def forward(self, tokens):
        ...         scores = self.q(tokens) @ self.k(tokens).transpose(1, 2)
        ...         return self.out(scores.softmax(-1) @ self.v(tokens))
        >>> graph = capture(Attention(), torch.zeros(1, 3, 4))
        >>> attention_layers(graph, {"q", "k", "v", "out"})
        [('q', 'k', 'v', 'out')]
    """
    found: dict[AttentionLayers, None] = {}
    for node in graph.nodes:
        if not node.op.startswith(_PRODUCTS) or node.module in names:
            continue
        sources: Sequence[str] = nearest_layers(graph, node.outputs[0], names)
        readers = nearest_readers(graph, node.outputs[0], names)
        if len(sources) == _INPUT_PROJECTIONS and len(readers) == 1:
            found[sources[0], sources[1], sources[2], readers[0]] = None
    return list(found)
