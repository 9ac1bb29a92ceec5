"""Morphs: every child is a network, and can keep the function of its parent."""

from random import Random

import pytest
import torch
from torch import nn

from nni.hpo.tuners.network_morphism.graph import Graph, json_to_graph
from nni.hpo.tuners.network_morphism.layers import Layer
from nni.hpo.tuners.network_morphism.morphs import (
    children,
    connected,
    deeper,
    default_graph,
    wider,
)

FIRST = default_graph((8, 8, 3), 4, length=2, width=6)
RELU_IN_THE_MIDDLE = 5
FIRST_NORM, SECOND_NORM = 3, 7


def run(graph: Graph) -> torch.Size:
    output: torch.Tensor = graph.produce_torch_model()(torch.zeros(2, 3, 8, 8))
    return output.shape


def test_deeper_adds_a_convolution_behind_a_relu() -> None:
    child = deeper(FIRST, RELU_IN_THE_MIDDLE, 3)

    added = [layer.name for layer in child.layers[RELU_IN_THE_MIDDLE : RELU_IN_THE_MIDDLE + 3]]
    assert added == ["StubConv2d", "StubBatchNormalization2d", "StubReLU"]
    assert child.operation_history == (["to_deeper_model", RELU_IN_THE_MIDDLE, 3],)
    assert run(child) == (2, 4)


def test_deeper_can_keep_the_function() -> None:
    parent, child = FIRST, deeper(FIRST, RELU_IN_THE_MIDDLE, 3)
    first, second = (graph.produce_torch_model().eval() for graph in (parent, child))
    old, new = (
        list(first.get_submodule("layers").children()),
        list(second.get_submodule("layers").children()),
    )
    for one, other in zip(
        old, new[:RELU_IN_THE_MIDDLE] + new[RELU_IN_THE_MIDDLE + 3 :], strict=True
    ):
        other.load_state_dict(one.state_dict())
    added = new[RELU_IN_THE_MIDDLE]
    assert isinstance(added, nn.Conv2d)
    nn.init.dirac_(added.weight)
    assert added.bias is not None
    nn.init.zeros_(added.bias)
    images = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(0))

    # The normalisation divides by sqrt(1 + 1e-5).
    torch.testing.assert_close(first(images), second(images), rtol=1e-4, atol=1e-4)


def test_wider_fits_all_that_reads_the_layer() -> None:
    child = wider(FIRST, 1, 9)

    assert child is not None
    assert [layer.args for layer in child.layers[1:3]] == [(3, 9, 3), (9,)]
    assert child.layers[5].args == (9, 6, 3)
    assert run(child) == (2, 4)


def test_wider_widens_what_is_added_too() -> None:
    parent = connected(FIRST, FIRST_NORM, SECOND_NORM, "Add")
    assert parent is not None

    child = wider(parent, 5, 9)

    assert child is not None
    widths = {layer.args[1] for layer in child.layers if layer.name == "StubConv2d"}
    assert widths == {6, 9}
    assert run(child) == (2, 4)


def test_the_output_is_never_widened() -> None:
    assert all(
        child.shapes[-1] == (4,) for seed in range(20) for child in children(FIRST, Random(seed))
    )


@pytest.mark.parametrize("merge", ["Add", "Concatenate"])
def test_a_connection_is_pooled_to_the_size_of_its_end(merge: str) -> None:
    child = connected(FIRST, FIRST_NORM, SECOND_NORM, merge)

    assert child is not None
    assert [layer.name for layer in child.layers].count("StubPooling2d") == 3
    assert run(child) == (2, 4)


def test_a_connection_is_pooled_down_to_one_pixel() -> None:
    layers = (Layer("StubReLU", (0,)), Layer("StubPooling2d", (1,), (2, 2, 0)))

    child = connected(Graph((2, 2, 3), layers), 1, 2, "Add")

    assert child is not None
    assert child.shapes[-1] == (1, 1, 3)


def test_a_connection_that_cannot_be_pooled_is_none() -> None:
    odd = default_graph((7, 7, 3), 4, length=2, width=6)
    reverse = connected(odd, SECOND_NORM, FIRST_NORM, "Add")

    assert reverse is None


def test_every_child_has_more_weights() -> None:
    sizes = [child.size() for seed in range(10) for child in children(FIRST, Random(seed))]

    assert min(sizes) > FIRST.size()


@pytest.mark.parametrize("seed", range(5))
def test_a_child_of_every_kind_is_yielded(seed: int) -> None:
    found = [child.operation_history[-1][0] for child in children(FIRST, Random(seed))]

    kinds = ["to_deeper_model", "to_wider_model", "to_add_skip_model", "to_concat_skip_model"]
    assert found == [kind for kind in kinds if kind in found]
    assert {"to_deeper_model", "to_wider_model"} <= set(found)


def test_a_wider_layer_has_half_as_much_again_or_twice_as_much() -> None:
    histories = [
        child.operation_history[-1]
        for seed in range(40)
        for child in children(FIRST, Random(seed))
        if child.operation_history[-1][0] == "to_wider_model"
    ]

    assert {width for _, _, width in histories} == {9, 12}
    # Every layer with a width but the last one.
    assert {index for _, index, _ in histories} == {
        index for index, layer in enumerate(FIRST.layers[:-1]) if layer.width
    }


def test_a_graph_without_layers_to_change_has_no_children() -> None:
    output_only = Graph((6,), (Layer("StubDense", (0,), (6, 4)),))

    assert list(children(output_only, Random(0))) == []


def test_generations_of_random_children_are_networks() -> None:
    rng = Random(0)
    graph = FIRST

    for _ in range(30):
        graph = rng.choice(list(children(graph, rng)))
        again = json_to_graph(graph.to_json())
        assert again.architecture == graph.architecture
        assert again.shapes == graph.shapes

    assert run(graph) == (2, 4)
    modules = graph.produce_torch_model().parameters()
    assert graph.size() == sum(parameter.numel() for parameter in modules)


def test_a_sum_with_the_input_is_not_widened() -> None:
    layers = (
        Layer("StubDense", (0,), (6, 6)),
        Layer("StubAdd", (0, 1)),
        Layer("StubDense", (2,), (6, 4)),
    )

    assert wider(Graph((6,), layers), 0, 8) is None


def test_skip_connections_of_both_kinds_are_among_the_children() -> None:
    found = {
        child.operation_history[-1][0]
        for seed in range(10)
        for child in children(FIRST, Random(seed))
    }

    assert {"to_add_skip_model", "to_concat_skip_model"} <= found


def test_skip_connections_lead_from_any_layer_to_a_later_normalization() -> None:
    ends = {
        tuple(child.operation_history[-1][1:])
        for seed in range(100)
        for child in children(FIRST, Random(seed))
        if "skip" in str(child.operation_history[-1][0])
    }

    assert ends == {(start, end) for end in (FIRST_NORM, SECOND_NORM) for start in range(1, end)}


@pytest.mark.parametrize(("size", "poolings"), [(1, 0), (2, 1), (3, 1), (4, 2), (9, 3)])
def test_blocks_halve_an_image_while_it_has_two_pixels(size: int, poolings: int) -> None:
    graph = default_graph((size, size, 3), 4, length=4, width=6)

    assert [layer.kind for layer in graph.layers].count("Pooling") == poolings


def test_first_architecture_has_its_width_length_and_rate() -> None:
    layers = default_graph((8, 8, 3), 4, length=1, width=6).layers

    assert [(layer.name, layer.args) for layer in layers] == [
        ("StubReLU", ()),
        ("StubConv2d", (3, 6, 3)),
        ("StubBatchNormalization2d", (6,)),
        ("StubPooling2d", (2, 2, 0)),
        ("StubGlobalPooling2d", ()),
        ("StubDropout2d", (0.25,)),
        ("StubDense", (6, 6)),
        ("StubReLU", ()),
        ("StubDense", (6, 4)),
    ]


def test_sum_with_a_concatenation_is_not_widened() -> None:
    layers = (
        Layer("StubDense", (0,), (3, 6)),
        Layer("StubConcatenate", (0, 0)),
        Layer("StubAdd", (1, 2)),
        Layer("StubDense", (3,), (6, 4)),
    )

    assert wider(Graph((3,), layers), 0, 8) is None


def test_layer_of_one_unit_becomes_two_wide() -> None:
    layers = (Layer("StubDense", (0,), (3, 1)), Layer("StubDense", (1,), (1, 4)))
    graph = Graph((3,), layers)

    widened = {
        child.layers[0].width for seed in range(9) for child in children(graph, Random(seed))
    }

    assert widened == {2}


def test_flat_relu_is_followed_by_a_dense_layer() -> None:
    layers = (Layer("StubReLU", (0,)), Layer("StubDense", (1,), (3, 4)))

    child = deeper(Graph((3,), layers), 1, 5)

    assert [(layer.name, layer.inputs, layer.args) for layer in child.layers] == [
        ("StubReLU", (0,), ()),
        ("StubDense", (1,), (3, 3)),
        ("StubReLU", (2,), ()),
        ("StubDense", (3,), (3, 4)),
    ]
