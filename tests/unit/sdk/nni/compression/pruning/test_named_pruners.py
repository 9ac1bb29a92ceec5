from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
from nni.compression.pruning.named_pruners import (
    PRUNERS,
    current_arguments,
    make_pruner,
    with_evaluator,
)

TRAINED: dict[str, dict[str, Any]] = {
    "slim": {"training_epochs": 2, "scale": 0.1},
    "apoz": {"training_batches": 1},
    "mean_activation": {"training_batches": 1, "activation": "relu6"},
    "taylorfo": {"training_batches": 1, "mode": "global"},
    "admm": {"iterations": 1, "training_epochs": 1},
}
"""Arguments of NNI 2.x besides the callbacks."""


class Trainer:
    """Trainer of NNI 2.x that counts its calls."""

    def __init__(self) -> None:
        self.model = nn.Sequential(nn.Conv2d(1, 4, 1), nn.BatchNorm2d(4))
        self.epochs = 0

    def __call__(self, model: nn.Module, optimizer: SGD, criterion: Any) -> None:
        self.epochs += 1
        optimizer.zero_grad()
        loss: Tensor = criterion(model(torch.randn(2, 1, 3, 3)), torch.zeros(2, 4, 3, 3))
        torch.autograd.backward(loss)
        optimizer.step()

    def params(self) -> dict[str, Any]:
        optimizer = SGD(self.model.parameters(), lr=0.1)
        return {"trainer": self, "optimizer": optimizer, "criterion": nn.MSELoss()}


@pytest.mark.parametrize("name", PRUNERS)
def test_every_algorithm_takes_the_arguments_of_nni_2(name: str) -> None:
    trainer = Trainer()
    params = {**trainer.params(), **TRAINED[name]} if name in TRAINED else {}
    kind = "BatchNorm2d" if name == "slim" else "Conv2d"

    pruner = make_pruner(name, params)
    pruner.reset(trainer.model, [{"op_types": [kind], "sparse_ratio": 0.5}])
    _, masks = pruner.compress()

    (own,) = masks.values()
    assert float(own["weight"].mean()) == 0.5
    assert trainer.epochs == {"slim": 2}.get(name, int(name in TRAINED))


def test_an_unknown_algorithm_is_refused() -> None:
    with pytest.raises(ValueError, match=r"pruning_algorithm must be one of level, .*, got 'agp'"):
        make_pruner("agp")


def test_unknown_arguments_name_the_algorithm() -> None:
    with pytest.raises(TypeError, match=r"pruning_params of l1: .*'steps'"):
        make_pruner("l1", {"steps": 1})


def test_callbacks_are_given_together() -> None:
    with pytest.raises(TypeError, match="trainer need optimizer, criterion too"):
        current_arguments({"trainer": print})


def test_an_evaluator_is_added_unless_the_pruner_has_its_own() -> None:
    evaluator = LegacyEvaluator(*Trainer().params().values())

    assert with_evaluator(None, evaluator) == {"evaluator": evaluator}
    assert with_evaluator({"evaluator": 1}, evaluator) == {"evaluator": 1}
    assert with_evaluator({"trainer": 1}, evaluator) == {"trainer": 1}
    assert with_evaluator({}, len) == {}
