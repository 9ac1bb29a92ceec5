from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.config.settings import ConfigListError
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.pruning import SlimPruner


def net(*scales: list[float]) -> nn.Sequential:
    model = nn.Sequential(*(nn.BatchNorm2d(len(one)) for one in scales))
    for layer, one in zip(model, scales, strict=True):
        layer.weight.data = torch.tensor(one)
    return model


def pruner_of(model: nn.Module, rate: float = 0.0, **kwargs: Any) -> SlimPruner:
    def train(one: nn.Module, optimizer: SGD, step: Any, *_: Any) -> None:
        optimizer.zero_grad()
        loss: Tensor = step(None, one)
        torch.autograd.backward(loss)
        optimizer.step()

    evaluator = TorchEvaluator(
        train,
        SGD(model.parameters(), lr=rate),
        lambda _, one: sum(parameter.sum() for parameter in one.parameters()) * 0.0,
    )
    config_list = [{"op_types": ["BatchNorm2d"], "sparse_ratio": 0.5}]
    return SlimPruner(model, config_list, evaluator, 1, **kwargs)


@pytest.mark.claim("compression", 25)
def test_the_penalty_adds_its_sign_to_the_gradient() -> None:
    pruner = pruner_of(net([2.0, -3.0]), rate=1.0, regular_scale=0.25)

    pruner.collect_data()

    scale = pruner.get_modules_wrapper()["0"].parameter("weight")
    assert scale.tolist() == [1.75, -2.75]


@pytest.mark.claim("compression", 25)
def test_scale_and_shift_share_the_mask() -> None:
    _, masks = pruner_of(net([0.5, -3.0, 0.1, 2.0])).compress()

    assert masks["0"]["weight"].tolist() == masks["0"]["bias"].tolist() == [0, 1, 0, 1]


@pytest.mark.claim("compression", 26)
def test_layers_share_the_ratio_and_keep_a_channel() -> None:
    model = net([0.01] * 4, [float(i) for i in range(1, 13)])

    _, masks = pruner_of(model).compress()

    lost = [int((targets["weight"] == 0).sum()) for targets in masks.values()]
    assert lost == [3, 5]


def test_each_layer_has_its_ratio_in_normal_mode() -> None:
    _, masks = pruner_of(net([0.01] * 4, [1.0] * 12), mode="normal").compress()

    assert [int(targets["weight"].sum()) for targets in masks.values()] == [2, 6]


def test_wrong_arguments_are_refused() -> None:
    with pytest.raises(ConfigListError, match="regular_scale must be a number >= 0, got -1"):
        pruner_of(net([1.0]), regular_scale=-1)


@pytest.mark.parametrize("given", [{}, {"training_steps": 1, "training_epochs": 1}])
def test_the_training_has_one_length(given: dict[str, Any]) -> None:
    model = net([1.0, 2.0])
    evaluator = TorchEvaluator(lambda *_: None, SGD(model.parameters(), lr=0.1), lambda *_: None)

    with pytest.raises(ValueError, match="exactly one of training_steps and training_epochs"):
        SlimPruner(model, [{"op_types": ["BatchNorm2d"], "sparse_ratio": 0.5}], evaluator, **given)


def test_epochs_pass_to_the_evaluator() -> None:
    model = net([1.0, 2.0])
    limits: list[tuple[Any, Any]] = []

    def train(*arguments: Any) -> None:
        limits.append(arguments[-2:])

    evaluator = TorchEvaluator(train, SGD(model.parameters(), lr=0.1), lambda *_: None)
    config_list = [{"op_types": ["BatchNorm2d"], "sparse_ratio": 0.5}]
    SlimPruner(model, config_list, evaluator, training_epochs=3).compress()

    assert limits == [(None, 3)]
