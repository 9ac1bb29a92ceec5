"""Translation of samples between the formats of NNI 2.x and of today."""

from typing import Any

import pytest
from torch import nn

import nni
from nni.nas.hub.pytorch.modules import AutoActivation, NasBench201Cell
from nni.nas.nn.pytorch import Cell, InputChoice, LayerChoice, ModelSpace, Repeat
from nni.nas.utils import convert_sample


class Net(ModelSpace):
    """Network with one primitive of each kind."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = LayerChoice([nn.ReLU(), nn.Tanh()], label="layer")
        self.named = LayerChoice({"relu": nn.ReLU(), "tanh": nn.Tanh()}, label="named")
        self.one = InputChoice(3, label="one")
        self.two = InputChoice(3, 2, label="two")
        self.repeat = Repeat(nn.Identity(), (1, 3), label="depth")
        self.number = self.add_mutable(nni.choice("number", [0, 1]))
        self.cell = Cell([nn.ReLU(), nn.Tanh()], 1, 1, 2, label="cell")
        self.edges = NasBench201Cell(
            {"none": lambda _, out: nn.Identity(), "skip": lambda _, out: nn.Identity()},
            4,
            4,
            2,
            label="edges",
        )
        self.act = AutoActivation(label="act")


NEW: dict[str, Any] = {
    "layer": 1,
    "named": "tanh",
    "one": [2],
    "two": [0, 2],
    "depth": 2,
    "number": 1,
    "cell/op_2_0": "1",
    "cell/input_2_0": [0],
    "edges/0_1": "skip",
    "act/unary_0": "Negative",
    "act/unary_1": "Identity",
    "act/binary_0": "Mul",
}
OLD: dict[str, Any] = {
    "layer": "1",
    "named": "tanh",
    "one": 2,
    "two": [0, 2],
    "depth": 2,
    "number": 1,
    "cell__op_0_0": "1",
    "cell__input_0_0": 0,
    "edges__0_1": "skip",
    "act__unary_0": "1",
    "act__unary_1": "0",
    "act__binary_0": "1",
}


def test_sample_of_today_is_written_in_the_format_of_nni_2() -> None:
    assert convert_sample(NEW, Net(), "gen2") == OLD


def test_sample_of_nni_2_is_one_of_the_space() -> None:
    sample = convert_sample(OLD, Net(), "gen3")

    assert sample == NEW
    assert Net().contains(sample)


def test_position_as_a_number_is_read_like_its_text() -> None:
    assert convert_sample({"layer": 1}, Net(), "gen3") == {"layer": 1}


def test_other_labels_stay() -> None:
    assert convert_sample({"rate": 0.1}, Net(), "gen2") == {"rate": 0.1}
    assert convert_sample({"rate": 0.1}, Net(), "gen3") == {"rate": 0.1}


def test_unknown_generation_is_refused() -> None:
    with pytest.raises(ValueError, match="to must be 'gen2' or 'gen3', got 'gen1'"):
        convert_sample({}, Net(), "gen1")  # type: ignore[arg-type]  # it is the mistake
