"""Pairs of QuantizeLinear and DequantizeLinear in a graph of ONNX."""

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np
import onnx_ir as ir

QUANTIZE: Final = "QuantizeLinear"
DEQUANTIZE: Final = "DequantizeLinear"
_NUMBERS: Final = 2
"""Scale and zero point."""


class Rounding(NamedTuple):
    """Scale, zero point, dtype and axis of a pair; equal ones round alike."""

    scale: bytes
    zero_point: bytes
    dtype: str
    axis: int | None


def quantizing_nodes(graph: ir.Graph) -> Iterator[ir.Node]:
    """Yield the QuantizeLinear nodes of a graph, in order; nodes may be added meanwhile.

    Args:
        graph: the graph.

    Yields:
        Nodes.
    """
    yield from [node for node in graph if node.op_type == QUANTIZE]


def rounding(node: ir.Node) -> Rounding | None:
    """Return scale, zero point, dtype and axis of one operator of a pair; None if not constant.

    Args:
        node: the node.
    """
    if len(node.inputs) <= _NUMBERS:
        return None
    scale, zero_point = constant(node.inputs[1]), constant(node.inputs[_NUMBERS])
    if scale is None or zero_point is None:
        return None
    axis = node.attributes.get_int("axis", 1) if scale.ndim else None
    return Rounding(scale.tobytes(), zero_point.tobytes(), str(zero_point.dtype), axis)


def constant(value: ir.Value | None) -> np.ndarray | None:
    """Return the array of a value that is stored in the graph; None for others.

    Args:
        value: an input of a node.
    """
    if value is None or value.const_value is None:
        return None
    return value.const_value.numpy()


def producer_of(value: ir.Value | None, operators: tuple[str, ...]) -> ir.Node | None:
    """Return the node that computes a value if its operator is a given one, else None.

    Args:
        value: an input of a node.
        operators: their names.
    """
    node = value.producer() if value is not None else None
    return node if node is not None and node.op_type in operators else None


def dequantized_by(quantize: ir.Node) -> list[ir.Node]:
    """Return the DequantizeLinear nodes that read what a QuantizeLinear stores.

    Args:
        quantize: the node.
    """
    return [node for node, _ in quantize.outputs[0].uses() if node.op_type == DEQUANTIZE]


def pair_of(quantize: ir.Node) -> ir.Value | None:
    """Return the rounded output of QuantizeLinear's pair; None if its integers are read otherwise.

    Args:
        quantize: the first node of the pair.
    """
    found = dequantized_by(quantize)
    alone = len(found) == len(quantize.outputs[0].uses()) == 1
    return found[0].outputs[0] if alone else None


def rounded_value(value: ir.Value, like: ir.Node) -> ir.Value:
    """Insert a new pair after a value, with the numbers of another one; return its output.

    Args:
        value: what the pair reads; not a value without shape.
        like: QuantizeLinear whose numbers the pair has.
    """
    made = []
    read = value
    for operator, template in ((QUANTIZE, like), (DEQUANTIZE, dequantized_by(like)[0])):
        node = ir.node(operator, [read, *template.inputs[1:]], attributes_of(template))
        read = node.outputs[0]
        read.shape, read.type = value.shape, template.outputs[0].type
        made.append(node)
    graph, producer = like.graph, value.producer()
    assert graph is not None
    if producer is not None:
        graph.insert_after(producer, made)
    else:
        graph.insert_before(graph[0], made)
    return read


def attributes_of(node: ir.Node) -> dict[str, int]:
    """Return the axis of a node as {"axis": axis}; {} if it has none.

    Args:
        node: QuantizeLinear or DequantizeLinear.
    """
    return {"axis": node.attributes.get_int("axis")} if "axis" in node.attributes else {}


def replace(old: ir.Value, new: ir.Value) -> None:
    """Replace a value by another one in all its readers, outputs of the graph included.

    Args:
        old: the value.
        new: the other one.
    """
    old.replace_all_uses_with(new, replace_graph_outputs=True)
