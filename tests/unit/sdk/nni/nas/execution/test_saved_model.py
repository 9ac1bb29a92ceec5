from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_model
from torch import Tensor, nn

from nni.nas.execution.saved_model import CODE, FOLDER, SAMPLE, WEIGHTS, save_model
from nni.nas.nn.pytorch import LayerChoice, ModelSpace
from nni.nas.space import ExecutableModelSpace, GraphModelSpace, RawFormatModelSpace


class Net(ModelSpace):
    """Space of two networks."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = LayerChoice([nn.Linear(4, 2), nn.Identity()], label="layer")

    def forward(self, inputs: Tensor) -> Tensor:
        output: Tensor = self.layer(inputs)
        return output


class Number:
    """Network without tensors."""


def saved(model: ExecutableModelSpace, network: Any, folder: Path) -> set[str]:
    return {path.name for path in save_model(model, network, folder)}


def test_weights_are_those_after_the_evaluation(tmp_path: Path) -> None:
    model = RawFormatModelSpace.from_model(Net()).freeze({"layer": 0})
    network = model.executable_model()
    nn.init.constant_(network.layer.weight, 3.0)

    assert saved(model, network, tmp_path) == {SAMPLE, WEIGHTS}

    loaded = model.build_model()
    load_model(loaded, str(tmp_path / FOLDER / WEIGHTS))
    assert torch.equal(loaded.layer.weight, torch.full((2, 4), 3.0))
    assert json.loads((tmp_path / FOLDER / SAMPLE).read_text()) == {"layer": 0}


def test_graph_leaves_its_code(tmp_path: Path) -> None:
    model = GraphModelSpace.from_model(Net()).freeze({"layer": 0})

    assert saved(model, model.executable_model(), tmp_path) == {SAMPLE, CODE, WEIGHTS}

    assert "class " in (tmp_path / FOLDER / CODE).read_text()


def test_network_without_tensors_leaves_its_sample(tmp_path: Path) -> None:
    model = RawFormatModelSpace.from_model(Net()).freeze({"layer": 1})

    assert saved(model, Number(), tmp_path) == {SAMPLE}
