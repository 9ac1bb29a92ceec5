"""Construction of spaces from architectures of NNI 2.x."""

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nni.mutable import SampleMissingError, SampleValidationError
from nni.nas.nn.pytorch import Cell, InputChoice, LayerChoice, ModelSpace
from nni.nas.space import current_model, model_context

OLD: dict[str, Any] = {"layer": "1", "skip": 1, "cell__op_0_0": "1", "cell__input_0_0": 0}
NEW: dict[str, Any] = {"layer": 1, "skip": [1], "cell/op_2_0": "1", "cell/input_2_0": [0]}


class Part(ModelSpace):
    """Space with a choice among layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = LayerChoice([nn.ReLU(), nn.Tanh()], label="layer")

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.layer(inputs)
        return output


class Net(ModelSpace):
    """Space with another one inside."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale
        self.part = Part()
        self.skip = InputChoice(2, label="skip")
        self.cell = Cell([nn.ReLU(), nn.Sigmoid()], 1, 1, 2, label="cell")

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.cell(self.skip([self.part(inputs), self.scale * inputs]), inputs)
        return output


class Automatic(ModelSpace, label_prefix="net"):
    """Space with an automatic label."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = LayerChoice([nn.ReLU(), nn.Tanh()])


def test_architecture_of_nni_2_is_converted_with_one_warning() -> None:
    inputs = torch.linspace(-1, 1, 6).reshape(2, 3)

    with (
        model_context(OLD),
        pytest.warns(
            UserWarning, match=r"NNI 2\.x .* construct Net; convert it .*convert_sample"
        ) as raised,
    ):
        network = Net(2.0)

    assert len(raised) == 1
    assert raised[0].filename == __file__
    assert network.simplify() == {}
    assert torch.equal(network(inputs), Net(2.0).freeze(NEW)(inputs))


def test_architecture_of_today_is_taken_without_a_warning() -> None:
    with warnings.catch_warnings(), model_context(NEW):
        warnings.simplefilter("error")
        network = Net()

    assert network.simplify() == {}


def test_sample_of_the_context_stays() -> None:
    with model_context(OLD):
        with pytest.warns(UserWarning, match="construct Net"):
            Net()
        sample = current_model()

    assert sample == OLD


def test_automatic_labels_are_those_of_the_first_construction() -> None:
    with model_context({"net/1": "1"}), pytest.warns(UserWarning, match="construct Automatic"):
        network = Automatic()

    assert isinstance(network.layer, nn.Tanh)


def test_sample_that_fits_in_neither_format_is_refused_as_it_is() -> None:
    with model_context({**OLD, "layer": "7"}), pytest.raises(SampleValidationError, match="'7'"):
        Net()


def test_missing_label_is_named() -> None:
    with model_context({"layer": 1}), pytest.raises(SampleMissingError, match="label 'skip'"):
        Net()
