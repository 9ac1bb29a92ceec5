"""Replacement of the choices of a network."""

from typing import Any

import pytest
import torch
from torch import nn

import nni.retiarii.nn.pytorch as legacy
from nni.nas.nn.pytorch import LayerChoice
from nni.retiarii.oneshot.pytorch import replace_input_choice, replace_layer_choice

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


class DartsLayerChoice(nn.Module):
    """Mixture of the layers of a choice, as the documentation of NNI 2.x writes it."""

    def __init__(self, layer_choice: LayerChoice) -> None:
        super().__init__()
        self.name = layer_choice.label
        self.op_choices = nn.ModuleDict(dict(layer_choice.named_children()))
        self.alpha = nn.Parameter(torch.zeros(len(self.op_choices)))


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = legacy.LayerChoice([nn.ReLU(), nn.Tanh()], label="first")
        self.rest = nn.Sequential(legacy.LayerChoice([nn.ReLU()], label="second"))
        self.skip = legacy.InputChoice(2, label="skip")


def test_layers_are_replaced_at_any_depth() -> None:
    network = Net()

    found = replace_layer_choice(network, DartsLayerChoice)

    assert [label for label, _ in found] == ["first", "second"]
    assert isinstance(network.first, DartsLayerChoice)
    assert network.rest[0] is found[1][1]
    assert list(found[0][1].op_choices) == ["0", "1"]  # type: ignore[arg-type]  # its modules


def test_inputs_are_appended_to_a_list_of_the_caller() -> None:
    network: Any = Net()
    modules: list[tuple[str, nn.Module]] = []

    assert replace_input_choice(network, lambda _: nn.Identity(), modules) is modules
    assert modules == [("skip", network.skip)]
    assert isinstance(network.skip, nn.Identity)
