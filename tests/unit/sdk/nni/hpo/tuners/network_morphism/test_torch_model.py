"""Torch modules of architectures."""

import json
from typing import Any

import pytest
import torch

from nni.hpo.tuners.network_morphism.graph import Graph, json_to_graph
from nni.hpo.tuners.network_morphism.layers import Layer
from nni.hpo.tuners.network_morphism.morphs import default_graph


def default_document() -> dict[str, Any]:
    return default_graph((32, 32, 3), 10, length=3, width=64).document()


@pytest.mark.claim("hpo", 39)
def test_the_model_maps_images_to_classes() -> None:
    model = json_to_graph(json.dumps(default_document())).produce_torch_model()

    output = model(torch.zeros(2, 3, 32, 32))

    assert output.shape == (2, 10)
    output.sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


@pytest.mark.parametrize("axes", [1, 3])
def test_other_numbers_of_axes_work_too(axes: int) -> None:
    graph = default_graph((8,) * axes + (2,), 3, length=2, width=4)

    assert graph.produce_torch_model()(torch.zeros(2, 2, *[8] * axes)).shape == (2, 3)


def test_flatten_and_softmax_are_understood() -> None:
    layers = (
        Layer("StubFlatten", (0,)),
        Layer("StubDense", (1,), (12, 2)),
        Layer("StubSoftmax", (2,)),
    )

    output = Graph((2, 2, 3), layers).produce_torch_model()(torch.zeros(1, 3, 2, 2))

    assert output.sum().item() == pytest.approx(1.0)


def output_of(
    input_shape: tuple[int, ...], layers: tuple[Layer, ...], batch: torch.Tensor
) -> torch.Tensor:
    output: torch.Tensor = Graph(input_shape, layers).produce_torch_model().eval()(batch)
    return output


BATCH = torch.arange(2 * 3 * 2 * 2, dtype=torch.float32).reshape(2, 3, 2, 2)


def test_global_pooling_is_the_mean_over_space() -> None:
    found = output_of((2, 2, 3), (Layer("StubGlobalPooling2d", (0,)),), BATCH)

    torch.testing.assert_close(found, BATCH.mean(dim=(2, 3)))


def test_sums_and_concatenations_are_over_channels() -> None:
    relu = Layer("StubReLU", (0,))

    added = output_of((2, 2, 3), (relu, Layer("StubAdd", (0, 1))), BATCH)
    joined = output_of((2, 2, 3), (relu, Layer("StubConcatenate", (0, 1))), BATCH)

    torch.testing.assert_close(added, 2 * BATCH)
    torch.testing.assert_close(joined, torch.cat([BATCH, BATCH], dim=1))


def test_softmax_is_over_the_classes() -> None:
    found = output_of((4,), (Layer("StubSoftmax", (0,)),), torch.tensor([[0.0, 1.0, 2.0, 3.0]] * 2))

    torch.testing.assert_close(found.sum(dim=1), torch.ones(2))


@pytest.mark.parametrize(
    ("layer", "kind"),
    [
        (Layer("StubDropout1d", (0,), (0.25,)), torch.nn.Dropout1d),
        (Layer("StubDropout2d", (0,), (0.25,)), torch.nn.Dropout2d),
        (Layer("StubDropout3d", (0,), (0.25,)), torch.nn.Dropout3d),
        (Layer("StubBatchNormalization1d", (0,), (3,)), torch.nn.BatchNorm1d),
        (Layer("StubBatchNormalization3d", (0,), (3,)), torch.nn.BatchNorm3d),
        (Layer("StubPooling1d", (0,), (2, 2, 0)), torch.nn.MaxPool1d),
        (Layer("StubPooling3d", (0,), (2, 2, 0)), torch.nn.MaxPool3d),
    ],
)
def test_modules_have_the_axes_of_their_layers(layer: Layer, kind: type[torch.nn.Module]) -> None:
    axes = int(layer.name[-2])

    model = Graph((4,) * axes + (3,), (layer,)).produce_torch_model()

    (module,) = model.get_submodule("layers").children()
    assert type(module) is kind


@pytest.mark.parametrize(
    ("layer", "kind"),
    [
        (Layer("StubDropout2d", (0,), (0.25,)), torch.nn.Dropout),
        (Layer("StubBatchNormalization1d", (0,), (3,)), torch.nn.BatchNorm1d),
    ],
)
def test_flat_tensors_have_modules_of_their_own(layer: Layer, kind: type[torch.nn.Module]) -> None:
    model = Graph((3,), (layer,)).produce_torch_model()

    (module,) = model.get_submodule("layers").children()
    assert type(module) is kind
