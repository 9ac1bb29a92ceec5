"""Architectures: from and to JSON, shapes, and the torch module."""

import json
from typing import Any

import pytest

from nni.algorithms.hpo.networkmorphism_tuner import graph as documented
from nni.hpo.tuners.network_morphism.graph import Graph, json_to_graph
from nni.hpo.tuners.network_morphism.layers import Layer
from nni.hpo.tuners.network_morphism.morphs import default_graph
from nni.networkmorphism_tuner import graph as older


def default_document() -> dict[str, Any]:
    return default_graph((32, 32, 3), 10, length=3, width=64).document()


def test_graph_that_was_read_equals_the_one_that_was_made() -> None:
    made = default_graph((32, 32, 3), 10, length=3, width=64)

    assert json_to_graph(json.dumps(made.document())) == made


@pytest.mark.claim("hpo", 39)
def test_first_architecture_is_the_documented_one() -> None:
    document = default_document()

    assert list(document) == [
        "input_shape",
        "weighted",
        "operation_history",
        "layer_id_to_input_node_ids",
        "layer_id_to_output_node_ids",
        "adj_list",
        "reverse_adj_list",
        "node_list",
        "layer_list",
    ]
    assert len(document["layer_list"]) == 17
    assert len(document["node_list"]) == 18
    assert document["layer_list"][1] == [1, ["StubConv2d", 1, 2, 3, 64, 3]]
    assert document["layer_list"][3] == [3, ["StubPooling2d", 3, 4, 2, 2, 0]]
    assert document["layer_list"][12:] == [
        [12, ["StubGlobalPooling2d", 12, 13]],
        [13, ["StubDropout2d", 13, 14, 0.25]],
        [14, ["StubDense", 14, 15, 64, 64]],
        [15, ["StubReLU", 15, 16]],
        [16, ["StubDense", 16, 17, 64, 10]],
    ]
    assert document["node_list"][12:14] == [[12, [4, 4, 64]], [13, [64]]]
    assert document["adj_list"]["16"] == [[17, 16]]
    assert document["reverse_adj_list"]["17"] == [[16, 16]]


@pytest.mark.claim("hpo", 39)
def test_json_to_graph_to_json_is_the_identity() -> None:
    text = json.dumps(default_document())

    assert json_to_graph(text).to_json() == text
    assert json_to_graph(json.loads(text)).document() == json.loads(text)


def test_a_foreign_order_of_nodes_is_kept_and_understood() -> None:
    document = default_document()
    document["layer_list"].reverse()
    document["layer_list"][-2][1] += [1, 1]  # stride and padding, said

    graph = json_to_graph(document)

    assert graph.document() == document
    assert graph.shapes == json_to_graph(default_document()).shapes


def test_size_counts_what_torch_trains() -> None:
    graph = json_to_graph(default_document())

    trained = sum(parameter.numel() for parameter in graph.produce_torch_model().parameters())

    assert graph.size() == trained


def test_documented_spellings_are_the_same_function() -> None:
    assert documented.json_to_graph is older.json_to_graph is json_to_graph


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"layer_list": None}, "documented keys"),
        ({"layer_list": [[0, ["StubMagic", 0, 1]]]}, "StubMagic"),
        ({"layer_list": [[0, ["StubConv2d", 0, 1, 3]]]}, "3 to 5 numbers"),
        ({"layer_list": [[0, ["StubDense", 0, 1, 3, 4]]]}, "flat input"),
        ({"layer_list": [[0, ["StubConv2d", 0, 1, 4, 4, 3]]]}, "takes 4 channels, got 3"),
        ({"layer_id_to_input_node_ids": {"0": [0, 0]}}, "number of inputs"),
        ({"layer_id_to_input_node_ids": {"0": [1]}}, "one input node"),
    ],
)
def test_what_is_no_graph_is_refused(change: dict[str, Any], word: str) -> None:
    document: dict[str, Any] = {
        "input_shape": [4, 4, 3],
        "weighted": False,
        "operation_history": [],
        "layer_id_to_input_node_ids": {"0": [0]},
        "layer_id_to_output_node_ids": {"0": [1]},
        "layer_list": [[0, ["StubReLU", 0, 1]]],
    }

    with pytest.raises(ValueError, match=word):
        json_to_graph({**document, **change})


def test_text_that_is_no_json_is_refused() -> None:
    with pytest.raises(ValueError, match="Expecting"):
        json_to_graph("{")


def test_a_layer_of_two_inputs_lists_them_and_one_of_one_does_not() -> None:
    layers = (
        Layer("StubDense", (0,), (6, 6)),
        Layer("StubAdd", (0, 1)),
        Layer("StubDense", (2,), (6, 4)),
    )

    document = Graph((6,), layers).document()

    assert [entry for _, entry in document["layer_list"]] == [
        ["StubDense", 0, 1, 6, 6],
        ["StubAdd", [0, 1], 2],
        ["StubDense", 2, 3, 6, 4],
    ]
    assert document["layer_id_to_input_node_ids"] == {"0": [0], "1": [0, 1], "2": [2]}
    assert document["layer_id_to_output_node_ids"] == {"0": [1], "1": [2], "2": [3]}
    assert document["adj_list"] == {"0": [[1, 0], [2, 1]], "1": [[2, 1]], "2": [[3, 2]], "3": []}
    assert document["reverse_adj_list"] == {
        "0": [],
        "1": [[0, 0]],
        "2": [[0, 1], [1, 1]],
        "3": [[2, 2]],
    }
    assert document["weighted"] is False


@pytest.mark.parametrize("node", [1, 2, -1])
def test_layer_reads_earlier_nodes_only(node: int) -> None:
    with pytest.raises(ValueError, match="layer 0 must read earlier nodes"):
        Graph((4,), (Layer("StubReLU", (node,)),))


def two_layers(inputs: dict[str, list[int]], outputs: dict[str, list[int]]) -> dict[str, Any]:
    return {
        "input_shape": [4],
        "weighted": False,
        "operation_history": [],
        "layer_id_to_input_node_ids": inputs,
        "layer_id_to_output_node_ids": outputs,
        "layer_list": [[0, ["StubAdd", [0, 2], 1]], [1, ["StubReLU", 1, 2]]],
    }


@pytest.mark.parametrize(
    ("inputs", "outputs", "words"),
    [
        ({"0": [0, 2], "1": [1]}, {"0": [1], "1": [2]}, "wait for each other"),
        ({"0": [0, 0], "1": [0]}, {"0": [1], "1": [1]}, "one node of its own"),
        ({"0": [0, 3], "1": [1]}, {"0": [1], "1": [2]}, r"one input node, got \[0, 3\]"),
    ],
)
def test_nodes_that_cannot_be_ordered_are_refused(
    inputs: dict[str, list[int]], outputs: dict[str, list[int]], words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        json_to_graph(two_layers(inputs, outputs))


def test_graph_with_weights_is_read_as_one() -> None:
    document = {**Graph((4,), (Layer("StubReLU", (0,)),)).document(), "weighted": True}

    assert json_to_graph(document).weighted
