"""Shapes and sizes of single layers, compared with torch by `test_graph`."""

import math

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


@pytest.mark.parametrize(
    ("name", "inputs", "args"),
    [
        ("StubConv2d", (0,), (3, 8)),
        ("StubConv2d", (0,), (3, 8, 3, 1, 1, 1)),
        ("StubDense", (0,), (3,)),
        ("StubDense", (0,), (3, 8, 1)),
        ("StubDense", (0,), (3, -1)),
        ("StubDense", (0,), (3, True)),
        ("StubDropout2d", (0,), (math.inf,)),
        ("StubReLU", (0,), (1,)),
    ],
)
def test_wrong_arguments_are_refused(
    name: str, inputs: tuple[int, ...], args: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match=f"{name} must have . to . numbers >= 0"):
        Layer(name, inputs, args)


@pytest.mark.parametrize(
    ("name", "inputs", "fits"),
    [
        ("StubReLU", (), False),
        ("StubReLU", (0,), True),
        ("StubReLU", (0, 1), False),
        ("StubAdd", (), False),
        ("StubAdd", (0, 1), True),
        ("StubConcatenate", (0, 1, 2), True),
    ],
)
def test_only_merging_layers_have_several_inputs(
    name: str, inputs: tuple[int, ...], fits: bool
) -> None:
    if fits:
        assert Layer(name, inputs).width == 0
        return
    with pytest.raises(ValueError, match=f"{name} has a wrong number of inputs"):
        Layer(name, inputs)


def test_width_is_that_of_filters_or_units() -> None:
    layers = [
        Layer("StubConv2d", (0,), (3, 8, 5)),
        Layer("StubDense", (0,), (3, 7)),
        Layer("StubBatchNormalization2d", (0,), (9,)),
        Layer("StubPooling2d", (0,), (2, 2, 0)),
    ]

    assert [layer.width for layer in layers] == [8, 7, 0, 0]
    assert layers[3].window() == (2, 2, 0)


@pytest.mark.parametrize(
    ("layer", "shape", "count"),
    [
        (Layer("StubConv1d", (0,), (3, 8, 5)), (4, 8), 8 * (3 * 5 + 1)),
        (Layer("StubConv2d", (0,), (3, 8, 5)), (4, 4, 8), 8 * (3 * 25 + 1)),
        (Layer("StubConv3d", (0,), (3, 8, 3)), (4, 4, 4, 8), 8 * (3 * 27 + 1)),
        (Layer("StubDense", (0,), (6, 4)), (4,), 4 * 7),
        (Layer("StubBatchNormalization2d", (0,), (9,)), (4, 4, 9), 18),
        (Layer("StubDropout2d", (0,), (0.5,)), (4, 4, 9), 0),
    ],
)
def test_weights_are_those_of_kernels_and_biases(
    layer: Layer, shape: tuple[int, ...], count: int
) -> None:
    assert weights(layer, shape) == count


@pytest.mark.parametrize(
    ("args", "size", "output"),
    [((2, 2, 0), 4, 2), ((2, 2, 0), 5, 2), ((3, 2, 1), 4, 2), ((3, 1, 1), 4, 4), ((3, 1, 0), 3, 1)],
)
def test_window_moves_by_its_stride_over_the_padded_image(
    args: tuple[int, int, int], size: int, output: int
) -> None:
    layer = Layer("StubPooling1d", (0,), args)

    assert output_shape(layer, [(size, 7)]) == (output, 7)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (Layer("StubPooling1d", (0,), (0, 1, 0)), (4, 3)),
        (Layer("StubPooling1d", (0,), (4, 1, 0)), (3, 3)),
        (Layer("StubPooling1d", (0,), (1, 1, 0)), (3,)),
        (Layer("StubDense", (0,), (4, 2)), (3, 4)),
        (Layer("StubBatchNormalization1d", (0,), (4,)), (3, 3)),
    ],
)
def test_window_or_channels_that_do_not_fit_are_refused(
    layer: Layer, shape: tuple[int, ...]
) -> None:
    with pytest.raises(ValueError, match=layer.name):
        output_shape(layer, [shape])
