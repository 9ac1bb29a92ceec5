from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.pruning import ActivationMeanRankPruner, TaylorFOWeightPruner

HALF = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]


def train(model: nn.Module, optimizer: Any, step: Callable[..., Tensor], *limits: Any) -> None:
    for _ in range(limits[1] or 1):
        optimizer.zero_grad()
        torch.autograd.backward(step(torch.ones(2, 2), model))
        optimizer.step()


def model_and_evaluator() -> tuple[nn.Sequential, TorchEvaluator]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 2))
    optimizer = SGD(model.parameters(), lr=0.1)
    return model, TorchEvaluator(train, optimizer, lambda batch, one: one(batch).square().sum())


def test_hooks_and_binding_are_gone_afterwards() -> None:
    model, evaluator = model_and_evaluator()
    pruner = TaylorFOWeightPruner(model, HALF, evaluator, 2)

    pruner.compress()
    pruner.unwrap_model()

    assert not any(one._backward_hooks for one in model.parameters())
    evaluator.bind_model(model)  # raises if the pruner were still bound
    evaluator.unbind_model()


def test_hooks_are_gone_when_the_training_fails() -> None:
    model, evaluator = model_and_evaluator()
    pruner = ActivationMeanRankPruner(model, HALF, evaluator, 1)
    evaluator._training_func = lambda *_: 1 / 0  # type: ignore[assignment]

    with pytest.raises(ZeroDivisionError):
        pruner.compress()

    assert not any(module._forward_hooks for module in model.modules())


def test_fine_tuning_follows_with_the_masks() -> None:
    model, evaluator = model_and_evaluator()
    pruner = TaylorFOWeightPruner(model, HALF, evaluator, 1)

    _, masks = pruner.compress(max_steps=3)

    weight = pruner.get_modules_wrapper()["0"].parameter("weight")
    assert not weight[masks["0"]["weight"] == 0].any()


def test_the_targets_of_an_entry_share_the_ratio_in_global_mode() -> None:
    model, evaluator = model_and_evaluator()
    with torch.no_grad():
        model.get_parameter("2.weight")[0] *= 1e-6
        model.get_parameter("0.weight").mul_(100)

    _, masks = TaylorFOWeightPruner(model, HALF, evaluator, 1, mode="global").compress()

    zeros = sum(int((targets["weight"] == 0).sum()) for targets in masks.values())
    assert zeros <= 8
    assert masks["2"]["weight"][0].tolist() == [0] * 4


def test_wrong_arguments_are_refused() -> None:
    model, evaluator = model_and_evaluator()

    with pytest.raises(ValueError, match="training_steps must be >= 1, got 0"):
        TaylorFOWeightPruner(model, HALF, evaluator, 0)
    with pytest.raises(TypeError, match=r"must be an int, got 1\.5"):
        TaylorFOWeightPruner(model, HALF, evaluator, 1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"evaluator must be an Evaluator.* got None"):
        TaylorFOWeightPruner(model, HALF, None, 1)  # type: ignore[arg-type]
