"""Stored integers of an exported graph: weights as they are read, biases of 32 bits."""

from typing import Final

import numpy as np
import onnx_ir as ir

from nni.compression.quantization.qdq.pairs import (
    DEQUANTIZE,
    attributes_of,
    constant,
    producer_of,
    replace,
)

_LAYERS: Final = ("Conv", "ConvTranspose", "Gemm", "MatMul")
"""Operators that add a bias, or have one added."""
_BIAS: Final = 2
"""Input of the others than MatMul that is the bias."""
_ZERO_POINT: Final = 2
"""Input of DequantizeLinear."""
_LARGEST: Final = np.iinfo(np.int32).max


def store_transposed(graph: ir.Graph) -> None:
    """Store integers transposed where the graph transposes what they represent.

    Args:
        graph: changed in place; nodes that no other reads stay.
    """
    for node in [one for one in graph if one.op_type == "Transpose"]:
        read = producer_of(node.inputs[0], (DEQUANTIZE,))
        stored = constant(read.inputs[0]) if read is not None else None
        order = node.attributes.get_ints("perm", None)
        if read is None or stored is None or order is None:
            continue
        attributes = attributes_of(read)
        if attributes:
            attributes = {"axis": list(order).index(attributes["axis"] % stored.ndim)}
        value = _stored(graph, f"{node.outputs[0].name}_stored", np.transpose(stored, order))
        replace(node.outputs[0], _dequantized(node, [value, *read.inputs[1:]], attributes))


def store_biases(graph: ir.Graph) -> None:
    """Store biases as integers of the scale of input times weight, as integer kernels add them.

    A bias stays where the weight has scales of other channels than those of the output.

    Args:
        graph: changed in place.
    """
    for layer in list(graph):
        scale = _product_scale(layer) if layer.op_type in _LAYERS else None
        place = _bias_place(layer)
        if scale is None or place is None:
            continue
        node, index = place
        bias = constant(node.inputs[index])
        if (
            bias is not None
            and scale.shape in {(), bias.shape}
            and bias.shape in {(), (bias.size,)}
        ):
            _store_bias(graph, node, index, bias, scale)


def separate_zero_points(graph: ir.Graph) -> None:
    """Store a separate zero point for each stored weight that shares one.

    ONNX Runtime makes weights unsigned for processors without VNNI, each with its zero point, and
    fails at one that it has converted already.

    Args:
        graph: changed in place.
    """
    seen: set[int] = set()
    for node in [one for one in graph if one.op_type == DEQUANTIZE]:
        if constant(node.inputs[0]) is None or len(node.inputs) <= _ZERO_POINT:
            continue
        value = node.inputs[_ZERO_POINT]
        number = constant(value)
        if value is None or number is None:
            continue
        if id(value) in seen:
            name = f"{node.outputs[0].name}_zero_point"
            node.replace_input_with(_ZERO_POINT, _stored(graph, name, number))
        seen.add(id(value))


def _bias_place(layer: ir.Node) -> tuple[ir.Node, int] | None:
    """Return the node and its input that is the bias of a layer; None if there is none."""
    if layer.op_type != "MatMul":
        return (layer, _BIAS) if len(layer.inputs) > _BIAS else None
    uses = list(layer.outputs[0].uses())
    if len(uses) != 1 or uses[0].node.op_type != "Add":
        return None
    return uses[0].node, 1 - uses[0].idx


def _store_bias(
    graph: ir.Graph, node: ir.Node, index: int, bias: np.ndarray, scale: np.ndarray
) -> None:
    integers = np.rint(bias.astype(np.float64) / scale)
    if np.abs(integers).max(initial=0) > _LARGEST:
        return  # a weight of zeros has no scale to speak of
    scale = scale.astype(np.float32)
    name = f"{node.outputs[0].name}_bias"
    values: list[ir.Value | None] = [
        _stored(graph, f"{name}_stored", integers.astype(np.int32)),
        _stored(graph, f"{name}_scale", scale),
        _stored(graph, f"{name}_zero_point", np.zeros(scale.shape, np.int32)),
    ]
    axis = {"axis": 0} if scale.ndim else {}
    node.replace_input_with(index, _dequantized(node, values, axis))


def _product_scale(node: ir.Node) -> np.ndarray | None:
    """Return the scale of the products of a layer: `()` or `(channels,)`; None if there is none."""
    reads = [producer_of(one, (DEQUANTIZE,)) for one in node.inputs[:2]]
    if reads[0] is None or reads[1] is None or constant(reads[1].inputs[0]) is None:
        return None
    of_input, of_weight = (constant(one.inputs[1]) for one in reads if one is not None)
    if of_input is None or of_weight is None or of_input.ndim:
        return None
    return np.asarray(of_input.astype(np.float64) * of_weight)


def _stored(graph: ir.Graph, name: str, array: np.ndarray) -> ir.Value:
    contiguous = np.array(array, order="C")  # ascontiguousarray would add a dimension to a scalar
    value = ir.val(name, const_value=ir.tensor(contiguous, name=name))
    graph.register_initializer(value)
    return value


def _dequantized(
    before: ir.Node, inputs: list[ir.Value | None], attributes: dict[str, int]
) -> ir.Value:
    node = ir.node(DEQUANTIZE, inputs, attributes)
    graph = before.graph
    assert graph is not None
    graph.insert_before(before, node)
    return node.outputs[0]
