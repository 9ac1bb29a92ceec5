"""Graphs of NAS-Bench-101 lose the vertices that do not count."""

import itertools

import pytest

from nni.nas.hub.pytorch.modules.nasbench101_graph import (
    NasBench101Graph,
    graph_of,
    pruned,
    vertex_channels,
)


def has_path(graph: NasBench101Graph, start: int, end: int) -> bool:
    """Return whether a path leads from one vertex to another, by search from the end."""
    return start == end or (
        end > 0 and any(has_path(graph, start, one) for one in graph.inputs[end - 1])
    )


def all_graphs(vertices: int) -> list[NasBench101Graph]:
    """Return all graphs of this many vertices, with distinct operations."""
    subsets = [
        [tuple(c) for size in range(at + 1) for c in itertools.combinations(range(at), size)]
        for at in range(1, vertices)
    ]
    operations = tuple(f"op{at}" for at in range(1, vertices - 1))
    return [NasBench101Graph(operations, inputs) for inputs in itertools.product(*subsets)]


@pytest.mark.parametrize("graph", all_graphs(4))
def test_vertices_on_paths_remain(graph: NasBench101Graph) -> None:
    last = graph.num_vertices - 1
    expected = [
        name
        for at, name in enumerate(graph.operations, 1)
        if has_path(graph, 0, at) and has_path(graph, at, last)
    ]

    found = pruned(graph)

    if not has_path(graph, 0, last):
        assert found is None
        return
    assert found is not None
    assert list(found.operations) == expected
    assert all(has_path(found, 0, at) for at in range(found.num_vertices))
    assert pruned(found) == found


def test_sample_becomes_a_graph_and_a_query() -> None:
    sample = {
        "c/num_nodes": 4,
        "c/op1": "conv",
        "c/op2": "pool",
        "c/op3": "unused",
        "c/input1": [0],
        "c/input2": [1, 0],
        "c/input3": [2],
        "c/input4": [0],
    }

    graph = graph_of(sample, "c/")

    assert graph == NasBench101Graph(("conv", "pool"), ((0,), (0, 1), (2,)))
    assert (graph.num_vertices, graph.num_edges) == (4, 4)
    assert graph.as_dict() == {
        "op1": "conv",
        "op2": "pool",
        "input1": [0],
        "input2": [0, 1],
        "input3": [2],
    }


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ([[0]], [3, 8]),
        ([[0], [1]], [3, 8, 8]),
        ([[0], [0], [0], [1, 2, 3]], [3, 3, 3, 2, 8]),
        ([[0], [1], [1], [2, 3]], [3, 4, 4, 4, 8]),
        ([[0], [1], [0, 2]], [3, 8, 8, 8]),
    ],
)
def test_channels_of_the_output_are_shared(inputs: list[list[int]], expected: list[int]) -> None:
    assert vertex_channels(3, 8, inputs) == expected
