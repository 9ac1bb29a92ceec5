"""Shapes and sizes of single layers, compared with torch by `test_graph`."""

import pytest

from nni.hpo.tuners.network_morphism.layers import Layer, output_shape, weights


@pytest.mark.parametrize(
    ("args", "window"),
    [((3, 8, 5), (5, 1, 2)), ((3, 8, 5, 2), (5, 2, 2)), ((3, 8, 5, 2, 0), (5, 2, 0))],
)
def test_a_convolution_may_leave_stride_and_padding_out(
    args: tuple[int, ...], window: tuple[int, int, int]
) -> None:
    assert Layer("StubConv2d", (0,), args).window() == window


def test_stride_makes_an_image_smaller() -> None:
    assert output_shape(Layer("StubConv2d", (0,), (3, 8, 3, 2)), [(9, 9, 3)]) == (5, 5, 8)


def test_a_concatenation_adds_channels_up() -> None:
    assert output_shape(Layer("StubConcatenate", (0, 1)), [(4, 4, 3), (4, 4, 5)]) == (4, 4, 8)


def test_global_pooling_keeps_channels_and_flattening_all_numbers() -> None:
    assert output_shape(Layer("StubGlobalPooling2d", (0,)), [(4, 4, 3)]) == (3,)
    assert output_shape(Layer("StubFlatten", (0,)), [(4, 4, 3)]) == (48,)


@pytest.mark.parametrize(
    ("layer", "shapes"),
    [
        (Layer("StubAdd", (0, 1)), [(4, 4, 3), (4, 4, 5)]),
        (Layer("StubConcatenate", (0, 1)), [(4, 4, 3), (2, 2, 3)]),
        (Layer("StubPooling2d", (0,), (2, 2, 0)), [(1, 1, 3)]),
        (Layer("StubPooling2d", (0,), (2, 0, 0)), [(4, 4, 3)]),
    ],
)
def test_layers_that_do_not_fit_are_refused(layer: Layer, shapes: list[tuple[int, ...]]) -> None:
    with pytest.raises(ValueError, match=layer.name):
        output_shape(layer, shapes)


@pytest.mark.parametrize("name", ["StubConv", "StubConv4d", "StubReLU2d", "Conv2d"])
def test_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="known one"):
        Layer(name, (0,), (3, 3, 3))


def test_a_layer_without_weights_has_none() -> None:
    assert weights(Layer("StubReLU", (0,)), (4, 4, 3)) == 0
