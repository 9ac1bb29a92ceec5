"""Placement of the pairs of an exported graph as runtimes recognise it."""

from typing import Final

import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from nni.compression.quantization.qdq.pairs import (
    DEQUANTIZE,
    QUANTIZE,
    Rounding,
    pair_of,
    producer_of,
    quantizing_nodes,
    replace,
    rounded_value,
    rounding,
)
from nni.compression.quantization.qdq.storage import (
    separate_zero_points,
    store_biases,
    store_transposed,
)

_MOVING: Final = (
    *("MaxPool", "Reshape", "Flatten", "Transpose", "Squeeze", "Unsqueeze", "Identity"),
    *("Slice", "Gather", "Split", "DepthToSpace", "SpaceToDepth"),
)
"""Operators that move values and compute none: rounding before or after them is the same."""
_LAYERS: Final = ("Conv", "ConvTranspose")
"""Operators with integer kernels only if their output is rounded, too."""
_ACTIVATIONS: Final = ("Relu", "Clip")
"""Operators that runtimes compute together with the layer before them."""
_SUMS: Final = ("Add", "Mul")
"""Operators with integer kernels if all inputs are rounded."""


def place_pairs(model: ir.Model, *, runtime: bool) -> None:
    """Merge and move pairs, store weights and biases as integers, separate zero points, in place.

    Args:
        model: an exported model; changed in place.
        runtime: whether rounded values are also read by the sums beside the layer that rounds them,
            and pairs are repeated before operators that move values. Sums then differ from the
            simulation by a rounding.
    """
    graph = model.graph
    merge_pairs(graph)
    store_transposed(graph)
    if runtime:
        repeat_pairs(graph)
        merge_pairs(graph)
        share_pairs(graph)
    store_biases(graph)
    separate_zero_points(graph)
    RemoveUnusedNodesPass()(model)


def merge_pairs(graph: ir.Graph) -> None:
    """Leave one pair where several round the same value alike.

    Args:
        graph: changed in place; nodes that no other reads stay.
    """
    first: dict[tuple[int, Rounding], ir.Value] = {}
    for node in quantizing_nodes(graph):
        read, numbers, pair = node.inputs[0], rounding(node), pair_of(node)
        if read is None or numbers is None or pair is None:
            continue
        before = producer_of(read, (DEQUANTIZE,))
        same = read if before is not None and rounding(before) == numbers else None
        same = same or first.setdefault((id(read), numbers), pair)
        if same is not pair:
            replace(pair, same)


def repeat_pairs(graph: ir.Graph) -> None:
    """Add a pair before operators that move values, where one follows them.

    Args:
        graph: changed in place.
    """
    waiting = list(quantizing_nodes(graph))
    while waiting:
        node = waiting.pop()
        moving = producer_of(node.inputs[0], _MOVING)
        if moving is None or pair_of(node) is None or not _by_tensor(node):
            continue
        if not _rounds_all(moving, node):
            continue
        value = moving.inputs[0]
        if value is None or producer_of(value, (DEQUANTIZE,)) is not None:
            continue
        moving.replace_input_with(0, rounded_value(value, node))
        added = [one for one, _ in value.uses() if one.op_type == QUANTIZE]
        waiting.extend(one for one in added if rounding(one) == rounding(node))


def _rounds_all(moving: ir.Node, node: ir.Node) -> bool:
    """Return whether no reader of an operator's outputs rounds them otherwise than a given one."""
    readers = [reader for output in moving.outputs for reader, _ in output.uses()]
    others = [one for one in readers if one.op_type == QUANTIZE]
    parts = len(moving.outputs) == 1 or len(readers) == len(others)
    return parts and all(rounding(one) == rounding(node) for one in others)


def share_pairs(graph: ir.Graph) -> None:
    """Connect sums and all readers of a layer's rounded output to rounded values; in place.

    All readers of the output of a convolution that is rounded for one of them read it rounded:
    otherwise the runtime could not compute it in integers.

    Args:
        graph: changed in place.
    """
    pairs: dict[int, ir.Value] = {}
    for node in quantizing_nodes(graph):
        pair = pair_of(node)
        if pair is not None and node.inputs[0] is not None and _by_tensor(node):
            pairs.setdefault(id(node.inputs[0]), pair)
            if _of_layer(node.inputs[0]):
                _read_rounded(node.inputs[0], pair)
    for node in [one for one in graph if one.op_type in _SUMS]:
        if all(_is_rounded(one, pairs) for one in node.inputs):
            for index, value in enumerate(node.inputs):
                node.replace_input_with(index, pairs.get(id(value), value))


def _read_rounded(value: ir.Value, pair: ir.Value) -> None:
    for reader, index in list(value.uses()):
        if reader.op_type != QUANTIZE:
            reader.replace_input_with(index, pair)


def _is_rounded(value: ir.Value | None, pairs: dict[int, ir.Value]) -> bool:
    return producer_of(value, (DEQUANTIZE,)) is not None or id(value) in pairs


def _of_layer(value: ir.Value) -> bool:
    """Return whether a convolution computes a value, with or without an activation."""
    activation = producer_of(value, _ACTIVATIONS)
    if activation is not None:
        return producer_of(activation.inputs[0], _LAYERS) is not None
    return producer_of(value, _LAYERS) is not None


def _by_tensor(node: ir.Node) -> bool:
    numbers = rounding(node)
    return numbers is not None and numbers.axis is None
