from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.pruning import ADMMPruner, LevelPruner

ENTRY = {"op_types": ["Linear"], "sparse_ratio": 0.5}


def model_of(seed: int = 0) -> nn.Sequential:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 4, bias=False))


def evaluator_of(model: nn.Module, goal: Tensor | None, steps: int = 20) -> TorchEvaluator:
    """Return an evaluator that draws the weight to a goal; None: one that trains nothing."""

    def train(one: nn.Module, optimizer: SGD, step: Any, _: Any, __: Any, epochs: int) -> None:
        for _step in range(0 if goal is None else steps * epochs):
            optimizer.zero_grad()
            loss: Tensor = step(goal, one)
            torch.autograd.backward(loss)
            optimizer.step()

    def distance(batch: Tensor, one: nn.Module) -> Tensor:
        return (one(torch.eye(6)).T - batch).square().sum()

    return TorchEvaluator(train, SGD(model.parameters(), lr=0.05), distance)


@pytest.mark.claim("compression", 30)
def test_without_training_the_masks_are_those_of_the_first_weights() -> None:
    model, other = model_of(), model_of()

    _, masks = ADMMPruner(model, [ENTRY], evaluator_of(model, None), 1, 1).compress()
    _, expected = LevelPruner(other, [ENTRY]).compress()

    assert torch.equal(masks["0"]["weight"], expected["0"]["weight"])


@pytest.mark.claim("compression", 31)
def test_what_will_be_masked_becomes_smaller() -> None:
    goal = torch.randn(4, 6, generator=torch.Generator().manual_seed(1))
    model = model_of()
    pruner = ADMMPruner(model, [ENTRY], evaluator_of(model, goal), 10, 3, rho=2.0)

    pruner.collect_data()

    masked = pruner.generate_masks()["0"]["weight"] == 0
    weight = pruner.get_modules_wrapper()["0"].parameter("weight").detach()
    # Without the penalty the loss draws each weight to its goal.
    assert float(weight[masked].norm()) < 0.5 * float(goal[masked].norm())
    torch.testing.assert_close(weight[~masked], goal[~masked], atol=0.1, rtol=0)


def test_a_step_adds_the_gradient_of_the_distance() -> None:
    model = model_of()
    start = model.get_parameter("0.weight").detach().clone()
    pruner = ADMMPruner(model, [ENTRY], evaluator_of(model, start, steps=1), 2, 1, rho=0.5)

    pruner.collect_data()

    # The first step starts at the goal and at Z: nothing moves. Then Z is the masked weight and
    # U the rest R, so the gradient of the second step is 0.5 (W - Z + U) = 0.5 * 2 R.
    rest = torch.where(start.abs() <= start.abs().median(), start, 0.0)
    moved = pruner.get_modules_wrapper()["0"].parameter("weight").detach()
    torch.testing.assert_close(moved, start - 0.05 * rest)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"iterations": 0}, "iterations must be >= 1, got 0"),
        ({"training_epochs": 0}, "training_epochs must be >= 1, got 0"),
        ({"rho": 0.0}, "rho must be > 0"),
    ],
)
def test_a_bad_argument_is_named(arguments: dict[str, Any], problem: str) -> None:
    model = model_of()
    given = {"iterations": 1, "training_epochs": 1, **arguments}

    with pytest.raises(ValueError, match=problem):
        ADMMPruner(model, [ENTRY], evaluator_of(model, None), **given)


def test_an_evaluator_is_needed() -> None:
    with pytest.raises(TypeError, match=r"evaluator must be an Evaluator.* got None"):
        ADMMPruner(model_of(), [ENTRY], None, 1, 1)  # type: ignore[arg-type]


def test_channels_are_pruned_by_the_base_algorithm() -> None:
    model = nn.Sequential(nn.Linear(2, 4, bias=False))
    with torch.no_grad():
        # The L1 norms are 3, 4, 2, 5, the L2 norms 3, 2.83, 2, 5.
        model[0].weight.copy_(torch.tensor([[3.0, 0.0], [2.0, 2.0], [2.0, 0.0], [5.0, 0.0]]))
    evaluator = TorchEvaluator(
        lambda *_: None, torch.optim.SGD(model.parameters(), lr=0.1), lambda batch, one: one(batch)
    )
    config_list = [{"op_types": ["Linear"], "sparse_ratio": 0.5}]
    kept = {}

    for name in ("l1", "l2"):
        pruner = ADMMPruner(model, config_list, evaluator, 1, 1, base_algo=name)
        kept[name] = pruner.compress()[1]["0"]["weight"].any(1).tolist()
        pruner.unwrap_model()

    assert kept == {"l1": [False, True, False, True], "l2": [True, False, False, True]}
