import numpy as np

from nni.compression.quantization.qdq.pairs import (
    attributes_of,
    constant,
    dequantized_by,
    pair_of,
    producer_of,
    quantizing_nodes,
    replace,
    rounded_value,
    rounding,
)
from tests.unit.sdk.nni.compression.quantization.qdq.graphs import Graph, node_of


def test_pairs_that_round_alike_have_the_same_numbers() -> None:
    graph = Graph()
    for scale in (0.5, 0.5, 0.25):
        graph.rounded(graph.x, scale)

    same, alike, other = (rounding(node) for node in quantizing_nodes(graph.graph))

    assert same == alike != other


def test_numbers_that_are_computed_are_unknown() -> None:
    graph = Graph()
    zero = graph.constant(0, np.uint8)
    node = graph.add("QuantizeLinear", graph.x, graph.add("Abs", graph.constant(0.5)), zero)

    assert rounding(node_of(node)) is None


def test_integers_with_a_second_reader_are_no_pair() -> None:
    graph = Graph()
    pair = graph.rounded(graph.x)
    (node,) = quantizing_nodes(graph.graph)
    assert pair_of(node) is pair
    assert dequantized_by(node) == [pair.producer()]

    graph.add("MaxPool", node.outputs[0])

    assert pair_of(node) is None


def test_a_new_pair_has_the_numbers_of_another() -> None:
    graph = Graph()
    value = graph.add("Relu", graph.x)
    graph.rounded(graph.x, 0.25)
    (node,) = quantizing_nodes(graph.graph)

    found = rounded_value(value, node)

    assert rounding(node_of(found)) == rounding(node)
    assert found.shape == value.shape


def test_constants_and_attributes_are_read() -> None:
    graph = Graph()
    weight = graph.weight(np.ones((2, 3)), [0.5, 0.25], axis=0)

    assert producer_of(weight, ("Relu",)) is None
    assert producer_of(weight, ("Relu", "DequantizeLinear")) is node_of(weight)
    assert constant(graph.x) is None
    assert constant(graph.constant(3.0)) == 3
    assert attributes_of(node_of(weight)) == {"axis": 0}


def test_an_output_of_the_graph_is_replaced_as_well() -> None:
    graph = Graph()
    value = graph.add("Relu", graph.x)
    graph.outputs([value])

    replace(value, graph.x)

    assert list(graph.graph.outputs) == [graph.x]
