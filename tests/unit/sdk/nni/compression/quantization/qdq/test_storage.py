from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from nni.compression.quantization.qdq.storage import (
    separate_zero_points,
    store_biases,
    store_transposed,
)
from tests.unit.sdk.nni.compression.quantization.qdq.graphs import Graph, node_of


def inputs_of(value: ir.Value | None) -> list[Any]:
    """Return the stored numbers that a value is computed from."""
    node = node_of(value)
    return [
        None if one is None or one.const_value is None else one.const_value.numpy()
        for one in node.inputs
    ]


def test_integers_are_stored_transposed() -> None:
    graph = Graph()
    integers = np.arange(6).reshape(2, 3)
    weight = graph.weight(integers, [0.5, 0.25], axis=0)
    product = graph.add("MatMul", graph.x, graph.add("Transpose", weight, perm=[1, 0]))

    store_transposed(graph.graph)

    read = node_of(product).inputs[1]
    assert inputs_of(read)[0].tolist() == integers.T.tolist()
    assert node_of(read).attributes["axis"].as_int() == 1


@pytest.mark.parametrize("scale", [0.25, [0.25, 0.5]])
@pytest.mark.parametrize("operator", ["Conv", "Gemm", "MatMul"])
def test_a_bias_has_the_scale_of_the_products(operator: str, scale: Any) -> None:
    graph = Graph()
    axis = {"axis": 0} if isinstance(scale, list) else {}
    layer = [graph.rounded(graph.x, 0.5), graph.weight(np.ones((2, 2)), scale, **axis)]
    bias = graph.constant([1.0, -2.0])
    if operator == "MatMul":
        found = graph.add("Add", graph.add(operator, *layer), bias)
    else:
        found = graph.add(operator, *layer, bias)

    store_biases(graph.graph)

    integers, stored_scale, zero_point = inputs_of(node_of(found).inputs[-1])
    assert stored_scale.tolist() == (np.multiply(scale, 0.5)).tolist()
    assert (integers * stored_scale).tolist() == [1, -2]
    assert (integers.dtype, zero_point.dtype) == (np.int32, np.int32)
    assert zero_point.shape == stored_scale.shape


def test_a_bias_of_other_channels_than_those_of_the_scale_stays() -> None:
    graph = Graph()
    bias = graph.constant([1.0, -2.0, 3.0, 4.0])
    weight = graph.weight(np.ones((4, 2, 1, 1)), [0.5, 0.25], axis=1)
    layer = graph.add("ConvTranspose", graph.rounded(graph.x), weight, bias, group=2)

    store_biases(graph.graph)

    assert node_of(layer).inputs[2] is bias


def test_a_bias_beside_values_that_are_not_rounded_stays() -> None:
    graph = Graph()
    bias = graph.constant([1.0, -2.0])
    found = graph.add("Conv", graph.x, graph.weight(np.ones((2, 2))), bias)

    store_biases(graph.graph)

    assert node_of(found).inputs[2] is bias


def test_a_bias_too_large_for_32_bits_stays() -> None:
    graph = Graph()
    bias = graph.constant([1e9])
    layer = (graph.rounded(graph.x, 0.5), graph.weight(np.ones((1, 2)), 1e-3))
    found = graph.add("Gemm", *layer, bias)

    store_biases(graph.graph)

    assert node_of(found).inputs[2] is bias


def test_weights_with_one_zero_point_get_one_each() -> None:
    graph = Graph()
    scale, zeros = graph.constant(0.5), graph.constant(0, np.int8)
    reads = [
        graph.add("DequantizeLinear", graph.constant(np.ones((2, 2)), np.int8), scale, zeros)
        for _ in range(2)
    ]

    separate_zero_points(graph.graph)

    assert node_of(reads[0]).inputs[2] is not node_of(reads[1]).inputs[2]
    assert inputs_of(reads[0])[2] == inputs_of(reads[1])[2] == 0
    assert inputs_of(reads[1])[2].dtype == np.int8


def test_the_zero_point_of_a_pair_stays_shared() -> None:
    graph = Graph()
    pair = graph.rounded(graph.x)

    separate_zero_points(graph.graph)

    quantize = node_of(node_of(pair).inputs[0])
    assert node_of(pair).inputs[2] is quantize.inputs[2]
