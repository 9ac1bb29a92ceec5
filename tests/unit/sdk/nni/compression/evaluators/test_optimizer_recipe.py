from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW
from torch.optim.lr_scheduler import (
    ChainedScheduler,
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    LRScheduler,
    SequentialLR,
    StepLR,
)

import nni
from nni.compression.evaluators.optimizer_recipe import OptimizerRecipe, rebuilt_scheduler


def parameters(seed: int = 0) -> dict[str, nn.Parameter]:
    torch.manual_seed(seed)
    return dict(nn.Linear(2, 1).named_parameters())


def test_an_optimizer_is_built_again_with_its_groups() -> None:
    own, other = parameters(), parameters(1)
    groups: list[dict[str, Any]] = [
        {"params": [own["weight"]], "lr": 0.1},
        {"params": [own["bias"]]},
    ]
    optimizer = AdamW(groups, lr=0.2)

    rebuilt = OptimizerRecipe.of(optimizer, own).build(other)

    assert type(rebuilt) is AdamW
    assert [group["lr"] for group in rebuilt.param_groups] == [0.1, 0.2]
    assert rebuilt.param_groups[0]["params"][0] is other["weight"]
    assert not rebuilt.state


def test_a_traced_optimizer_is_built_from_its_arguments() -> None:
    own = parameters()
    optimizer = nni.trace(SGD)(own.values(), 0.5, momentum=0.9)

    rebuilt = OptimizerRecipe.of(optimizer, own).build(parameters(1))

    assert type(rebuilt) is SGD
    assert (rebuilt.param_groups[0]["lr"], rebuilt.param_groups[0]["momentum"]) == (0.5, 0.9)


@pytest.mark.parametrize("traced", [True, False])
def test_a_scheduler_starts_again_on_the_new_optimizer(*, traced: bool) -> None:
    own = parameters()
    optimizer = SGD(own.values(), lr=1.0)
    make = nni.trace(StepLR) if traced else StepLR
    scheduler = make(optimizer, step_size=1, gamma=0.1)

    rebuilt_optimizer = OptimizerRecipe.of(optimizer, own).build(own)
    rebuilt = rebuilt_scheduler(scheduler, rebuilt_optimizer)
    rebuilt_optimizer.step()
    rebuilt.step()

    assert rebuilt_optimizer.param_groups[0]["lr"] == pytest.approx(0.1)
    assert optimizer.param_groups[0]["lr"] == 1.0


def rates(optimizer: SGD, scheduler: LRScheduler) -> list[float]:
    """Return the learning rate at first and after each of some steps."""
    found = [optimizer.param_groups[0]["lr"]]
    for _ in range(5):
        optimizer.step()
        scheduler.step()
        found.append(optimizer.param_groups[0]["lr"])
    return found


@pytest.mark.parametrize(
    "make",
    [
        lambda one: LinearLR(one, 0.5, total_iters=3),
        lambda one: ConstantLR(one, 0.5, total_iters=3),
        lambda one: LambdaLR(one, lambda step: (step + 1) / 10),
        lambda one: SequentialLR(one, [LinearLR(one, 0.5), ExponentialLR(one, 0.9)], [2]),
        lambda one: nni.trace(SequentialLR)(
            one, [LinearLR(one, 0.5), ExponentialLR(one, 0.9)], [2]
        ),
        lambda one: ChainedScheduler([LinearLR(one, 0.5), ExponentialLR(one, 0.9)]),
        lambda one: nni.trace(ChainedScheduler)([LinearLR(one, 0.5), ExponentialLR(one, 0.9)]),
    ],
)
def test_a_copied_scheduler_sets_the_rates_of_the_first_one(
    make: Callable[[SGD], LRScheduler],
) -> None:
    own = parameters()
    optimizer = SGD(own.values(), lr=1.0)
    scheduler = make(optimizer)

    found = []
    for _ in range(2):
        copied = OptimizerRecipe.of(optimizer, own).build(own)
        assert isinstance(copied, SGD)
        found.append(rates(copied, rebuilt_scheduler(scheduler, copied)))

    assert found == [pytest.approx(rates(optimizer, scheduler))] * 2


def test_a_changed_rate_is_reset_to_the_first() -> None:
    own = parameters()
    optimizer = SGD(own.values(), lr=1.0)
    LambdaLR(optimizer, lambda _: 0.01)

    rebuilt = OptimizerRecipe.of(optimizer, own).build(own)

    assert rebuilt.param_groups[0]["lr"] == 1.0


def test_parameters_that_the_model_lacks_are_refused() -> None:
    optimizer = SGD(parameters().values(), lr=0.1)

    with pytest.raises(ValueError, match="has 2 parameters that the model lacks"):
        OptimizerRecipe.of(optimizer, parameters(1))
