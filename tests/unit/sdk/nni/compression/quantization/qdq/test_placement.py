import pytest

from nni.compression.quantization.qdq.placement import place_pairs
from tests.unit.sdk.nni.compression.quantization.qdq.graphs import Graph, read_by


def test_a_value_is_rounded_once() -> None:
    graph = Graph()
    one, other = (graph.add("Neg", graph.rounded(graph.x)) for _ in range(2))
    graph.outputs([one, other])

    place_pairs(graph.model, runtime=False)

    assert graph.operators() == {"QuantizeLinear": 1, "DequantizeLinear": 1, "Neg": 2}


def test_a_rounded_value_is_not_rounded_again() -> None:
    graph = Graph()
    graph.outputs([graph.add("Neg", graph.rounded(graph.rounded(graph.x)))])

    place_pairs(graph.model, runtime=False)

    assert graph.operators()["QuantizeLinear"] == 1


def test_another_scale_rounds_again() -> None:
    graph = Graph()
    graph.outputs([graph.rounded(graph.rounded(graph.x, 0.5), 0.25), graph.rounded(graph.x, 1.0)])

    place_pairs(graph.model, runtime=True)

    assert graph.operators()["QuantizeLinear"] == 3


@pytest.mark.parametrize(("runtime", "count"), [(False, 1), (True, 3)])
def test_pairs_are_repeated_before_what_moves_values(runtime: bool, count: int) -> None:
    graph = Graph()
    pooled = graph.add("MaxPool", graph.add("Relu", graph.x))
    flat = graph.add("Flatten", pooled)
    graph.outputs([graph.rounded(flat)])

    place_pairs(graph.model, runtime=runtime)

    assert graph.operators()["QuantizeLinear"] == count
    assert read_by(pooled) == (["DequantizeLinear"] if runtime else ["Relu"])


@pytest.mark.parametrize("other", [0.25, None])
def test_a_value_with_other_parts_is_not_rounded_for_one_of_them(other: float | None) -> None:
    graph = Graph()
    one, rest = graph.split(graph.x)
    rest = rest if other is None else graph.rounded(rest, other)
    graph.outputs([graph.rounded(one, 0.5), graph.add("Neg", rest)])

    place_pairs(graph.model, runtime=True)

    assert read_by(one) == ["x"]


def test_a_value_whose_parts_are_rounded_alike_is_rounded_before() -> None:
    graph = Graph()
    parts = graph.split(graph.x)
    graph.outputs([graph.rounded(one, 0.5) for one in parts])

    place_pairs(graph.model, runtime=True)

    assert read_by(parts[0]) == ["DequantizeLinear"]


@pytest.mark.parametrize("runtime", [False, True])
def test_a_sum_reads_the_rounded_value_if_all_that_it_adds_is_rounded(runtime: bool) -> None:
    graph = Graph()
    beside = graph.add("Sigmoid", graph.x)
    layer = graph.rounded(graph.add("Neg", graph.rounded(beside)))
    total = graph.add("Add", beside, layer)
    graph.outputs([total])

    place_pairs(graph.model, runtime=runtime)

    first = "DequantizeLinear" if runtime else "Sigmoid"
    assert read_by(total) == [first, "DequantizeLinear"]


def test_a_sum_with_a_value_that_is_not_rounded_stays() -> None:
    graph = Graph()
    beside = graph.add("Sigmoid", graph.x)
    total = graph.add("Add", beside, graph.add("Neg", graph.rounded(beside)))
    graph.outputs([total])

    place_pairs(graph.model, runtime=True)

    assert read_by(total) == ["Sigmoid", "Neg"]


def test_all_readers_of_a_convolution_read_it_rounded() -> None:
    graph = Graph()
    found = graph.add("Relu", graph.add("Conv", graph.x, graph.constant(1.0)))
    graph.rounded(found)
    reader = graph.add("Sigmoid", found)
    graph.outputs([reader])

    place_pairs(graph.model, runtime=True)

    assert read_by(reader) == ["DequantizeLinear"]
