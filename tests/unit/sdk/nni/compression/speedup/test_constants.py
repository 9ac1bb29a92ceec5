"""Constants of masked models, found with NaN as input."""

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nni.compression.speedup.constants import Arrivals, probe_constants
from nni.compression.speedup.following import DivergedError
from nni.compression.speedup.recording import capture


def last_arrivals(model: nn.Module, inputs: Tensor) -> Arrivals:
    graph = capture(model.eval(), inputs)
    wanted = {node.index for node in graph.nodes if node.op in {"aten.convolution", "aten.addmm"}}
    return probe_constants(model, inputs, graph, wanted).arrivals[max(wanted)]


def test_masked_filters_are_zero_after_norm_and_activation() -> None:
    model = nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.ReLU(), nn.Conv2d(3, 2, 1))
    model[0].weight.data[1] = 0
    model[0].bias.data[1] = 0
    model[1].bias.data.fill_(0.5)

    found = last_arrivals(model, torch.zeros(1, 2, 4, 4))

    assert np.isnan(found.constants).tolist() == [True, False, True]
    assert found.constants[1] == 0
    assert model[1].bias.tolist() == [0.5, 0.0, 0.5]


def test_a_bias_that_is_not_masked_is_a_constant() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sigmoid(), nn.Linear(2, 1))
    model[0].weight.data[0] = 0
    model[0].bias.data.zero_()

    assert last_arrivals(model, torch.zeros(1, 2)).constants[0] == 0.5


def test_products_with_zero_are_zero() -> None:
    class Gate(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(2, 3)
            self.gate = nn.Linear(2, 3)
            self.last = nn.Linear(3, 1)

        def forward(self, features: Tensor) -> Tensor:
            return self.last(self.first(features) * self.gate(features))

    model = Gate()
    model.gate.weight.data[2] = 0
    model.gate.bias.data[2] = 0

    found = last_arrivals(model, torch.zeros(1, 2))

    assert np.isnan(found.constants).tolist() == [True, True, False]


def test_values_from_comparisons_count_as_varying() -> None:
    class Threshold(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = nn.Linear(2, 1)

        def forward(self, features: Tensor) -> Tensor:
            return self.last(torch.where(features > 0, torch.ones(2), torch.zeros(2)))

    assert np.isnan(last_arrivals(Threshold(), torch.zeros(1, 2)).constants).all()


def test_weights_of_groups_are_listed_by_input_channel() -> None:
    model = nn.Sequential(nn.Conv2d(4, 4, 1, groups=2))
    model[0].weight.data[0, 1] = 0

    found = last_arrivals(model, torch.zeros(1, 4, 2, 2))

    assert found.weights.tolist() == [[True, True], [False, True], [True, True], [True, True]]


def test_embedded_tokens_vary_where_rows_differ() -> None:
    model = nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 1))
    model[0].weight.data[:, 1] = 2.0

    found = last_arrivals(model, torch.zeros(1, 4, dtype=torch.long))

    assert np.isnan(found.constants).tolist() == [True, False, True]
    assert found.constants[1] == 2.0


def test_models_that_change_their_path_are_refused() -> None:
    class Random(nn.Module):
        def forward(self, features: Tensor) -> Tensor:
            return features.relu() if next(numbers) % 2 else features.sigmoid()

    numbers = itertools.count()
    model, inputs = Random(), torch.zeros(1)
    graph = capture(model, inputs)

    with pytest.raises(DivergedError, match="does not repeat"):
        probe_constants(model, inputs, graph, set())
