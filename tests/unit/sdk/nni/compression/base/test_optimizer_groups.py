from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import (
    ChainedScheduler,
    CosineAnnealingLR,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    OneCycleLR,
    ReduceLROnPlateau,
    SequentialLR,
    StepLR,
)

from nni.compression.base.optimizer_groups import add_group

SCHEDULERS: dict[str, Callable[[Optimizer], Any]] = {
    "step": lambda one: StepLR(one, 1, gamma=0.5),
    "lambda": lambda one: LambdaLR(one, [lambda step: 0.5**step]),
    "cosine": lambda one: CosineAnnealingLR(one, 4),
    "cycle": lambda one: OneCycleLR(one, max_lr=1.0, total_steps=6),
    "cyclic": lambda one: CyclicLR(one, 0.1, 1.0, step_size_up=2),
    "plateau": lambda one: ReduceLROnPlateau(one, patience=0, min_lr=[0.01]),
    "sequence": lambda one: SequentialLR(one, [LinearLR(one), ExponentialLR(one, 0.5)], [2]),
    "chain": lambda one: ChainedScheduler([LinearLR(one), ExponentialLR(one, 0.5)]),
}


@pytest.mark.parametrize("name", SCHEDULERS)
@pytest.mark.parametrize("after", [0, 1])
def test_a_group_joins_an_optimizer_with_any_scheduler(name: str, after: int) -> None:
    first, added = (nn.Parameter(torch.ones(())) for _ in range(2))
    optimizer = SGD([first], lr=1.0, momentum=0.9)
    scheduler = SCHEDULERS[name](optimizer)

    for step in range(4):
        if step == after:
            add_group(optimizer, [scheduler], {"params": [added], "lr": 1.0})
        torch.autograd.backward(first + added)
        optimizer.step()
        scheduler.step(1.0) if name == "plateau" else scheduler.step()

    rates = [group["lr"] for group in optimizer.param_groups]
    assert len(rates) == 2
    assert rates[0] != 1.0
    if after == 0 and name != "cyclic":  # which gives each group bounds of its own
        assert rates[0] == pytest.approx(rates[1])
    assert added.item() != 1.0


def test_hyperparameters_of_the_group_stay() -> None:
    optimizer = SGD([nn.Parameter(torch.ones(()))], lr=1.0, momentum=0.9)

    add_group(optimizer, [], {"params": [nn.Parameter(torch.ones(()))], "momentum": 0.1})

    assert [one["momentum"] for one in optimizer.param_groups] == [0.9, 0.1]
    assert optimizer.param_groups[1]["lr"] == 1.0
