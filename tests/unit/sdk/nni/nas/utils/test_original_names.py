"""Names of a found network's parameters in its space."""

from typing import Any

import pytest
import torch
from torch import nn

from nni.mutable import Sample
from nni.nas.nn.pytorch import Cell, LayerChoice, ModelSpace, Repeat
from nni.nas.space import model_context
from nni.nas.utils import original_names, original_state_dict_hooks


class Net(ModelSpace):
    """Choices inside choices, a repetition and a cell."""

    def __init__(self) -> None:
        super().__init__()
        inner = LayerChoice([nn.Identity(), nn.Linear(4, 4)], label="inner")
        self.outer = LayerChoice({"deep": inner, "flat": nn.Linear(4, 4)}, label="outer")
        self.body = Repeat(lambda _: nn.Linear(4, 4), (1, 3), label="depth")
        self.cell = Cell([nn.Linear(4, 4), nn.Linear(4, 4, bias=False)], 1, label="cell")
        self.last = nn.BatchNorm1d(4)


SAMPLE = {
    "outer": "deep", "inner": 1, "depth": 2, "cell/op_1_0": "1", "cell/input_1_0": [0],
}  # fmt: skip


def network_of(space: Net, sample: Sample, way: str) -> Any:
    if way == "freeze":
        return space.freeze(sample)
    with model_context(sample):
        return Net()


both_ways = pytest.mark.parametrize("way", ["freeze", "context"])


@both_ways
def test_names_are_those_of_the_space(way: str) -> None:
    space = Net()
    names = original_names(network_of(space, SAMPLE, way))

    assert names["outer.weight"] == "outer.deep.1.weight"
    assert names["body.1.bias"] == "body.blocks.1.bias"
    assert names["cell.ops.0.0.weight"] == "cell.ops.0.0.1.weight"
    assert names["last.running_mean"] == "last.running_mean"
    assert set(names.values()) <= set(space.state_dict())


@both_ways
def test_weights_of_the_space_are_loaded(way: str) -> None:
    space: Any = Net()
    network = network_of(space, SAMPLE, way)
    for parameter in network.parameters():
        parameter.data = torch.zeros_like(parameter)

    with original_state_dict_hooks(network):
        loaded = network.load_state_dict(space.state_dict(), strict=False)

    assert loaded.missing_keys == []
    assert "outer.flat.weight" in loaded.unexpected_keys
    assert torch.equal(network.outer.weight, space.outer["deep"][1].weight)
    assert torch.equal(network.body[1].weight, space.body.blocks[1].weight)


def test_state_dict_has_the_names_of_the_space() -> None:
    network = Net().freeze(SAMPLE)
    before = list(network.state_dict())

    with original_state_dict_hooks(network):
        inside = set(network.state_dict())

    assert inside == set(original_names(network).values())
    assert list(network.state_dict()) == before


def test_choosing_again_does_not_lengthen_the_names() -> None:
    space = Net()
    for _ in range(3):
        network = space.freeze(SAMPLE)

    assert original_names(network)["outer.weight"] == "outer.deep.1.weight"


def test_network_without_choices_keeps_its_names() -> None:
    network = nn.Sequential(nn.Linear(1, 1))

    assert original_names(network) == {"0.weight": "0.weight", "0.bias": "0.bias"}
