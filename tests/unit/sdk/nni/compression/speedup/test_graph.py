"""Nodes and values of a recorded run."""

from nni.compression.speedup.graph import Node, OperationGraph, Ref, Value


def test_inputs_are_found_in_nested_arguments() -> None:
    arguments = {"tensors": [Ref(3), [Ref(1)]], "dim": 0, "out": None}

    node = Node(0, "aten.cat", arguments, [4], "block")

    assert list(node.inputs()) == [3, 1]
    assert node.describe() == "cat in block"


def test_sources_are_parameters_and_buffers_by_name() -> None:
    graph = OperationGraph([Value(0, (2,), floating=True), Value(1, (3,), True, "weight")])

    assert graph.sources == {"weight": 1}
