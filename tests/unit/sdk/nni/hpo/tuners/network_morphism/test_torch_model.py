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
