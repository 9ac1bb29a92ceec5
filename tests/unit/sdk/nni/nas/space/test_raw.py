"""The format that keeps the live module."""

from typing import Any

import pytest
import torch
from torch import nn

from nni.mutable import Categorical, MutableList, Sample
from nni.nas.nn.pytorch import LayerChoice, ModelSpace, MutableLinear
from nni.nas.space import RawFormatModelSpace
from tests.unit.sdk.nni.nas.space_models import SharedSpace, TinySpace, WeightSum


def parameters_of(module: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in module.parameters()]


@pytest.mark.claim("nas", 89)
def test_two_evaluations_do_not_change_each_others_weights() -> None:
    space = SharedSpace()
    before = parameters_of(space)
    raw = RawFormatModelSpace.from_model(space, WeightSum())

    first = raw.freeze({"first": 0}).execute()
    second = raw.freeze({"first": 0}).execute()

    assert first == second
    assert all(map(torch.equal, before, parameters_of(space)))


def test_models_begin_with_the_weights_of_the_space() -> None:
    space: Any = SharedSpace()

    network = RawFormatModelSpace(space).freeze({"first": 1}).executable_model()

    assert torch.equal(network.first.weight, space.first[1].weight)
    assert network.first.weight is not space.first[1].weight


def test_models_of_a_supernet_share_its_weights() -> None:
    space = SharedSpace()
    space.is_supernet = True

    network = RawFormatModelSpace(space).freeze({"first": 1}).executable_model()

    assert network.first is space.first[1]


def test_unfrozen_space_executes_the_space_itself() -> None:
    space = TinySpace()

    assert RawFormatModelSpace(space).executable_model() is space


def test_any_mutable_module_is_a_space() -> None:
    raw = RawFormatModelSpace(LayerChoice([nn.ReLU(), nn.Tanh()], label="layer"))

    assert isinstance(raw.freeze({"layer": 1}).executable_model(), nn.Tanh)


def test_plain_module_is_refused() -> None:
    with pytest.raises(TypeError, match=r"model_space must be a mutable.*got Linear"):
        RawFormatModelSpace(nn.Linear(1, 1))


def test_tensors_that_freezing_made_are_not_copied() -> None:
    class Mixed(ModelSpace):
        def __init__(self) -> None:
            super().__init__()
            self.choice = LayerChoice([nn.Linear(2, 2)], label="choice")
            self.wide = MutableLinear(2, Categorical([3, 4], label="width"))

        def freeze(self, sample: Sample) -> Any:
            self.frozen = [super().freeze(sample)]
            return self.frozen[0]

    space = Mixed()

    network = RawFormatModelSpace(space).freeze({"choice": 0, "width": 4}).executable_model()

    assert network.wide.weight is space.frozen[0].wide.weight
    assert network.choice.weight is not space.frozen[0].choice.weight


def test_space_that_is_no_module_is_copied() -> None:
    values = Categorical([[1], [2]], label="values")

    network = RawFormatModelSpace(MutableList([values])).freeze({"values": [2]}).build_model()
    network[0].append(3)

    assert values.values == [[1], [2]]
