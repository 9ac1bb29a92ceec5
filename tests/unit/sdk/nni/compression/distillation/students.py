"""Students, teachers and evaluators of the tests of distillation."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.evaluators.torch_evaluator import TorchEvaluator

BATCH = torch.eye(3)


def network(seed: int, width: int = 4) -> nn.Sequential:
    """Return two Linear layers with a ReLU between them, always the same for a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Linear(3, width), nn.ReLU(), nn.Linear(width, 2))


def mean_square(batch: Tensor, model: nn.Module) -> Tensor:
    """Return a loss that a distillation works against."""
    loss: Tensor = model(batch).square().mean()
    return loss


def evaluator_of(
    model: nn.Module,
    step: Callable[[Tensor, nn.Module], Tensor] = mean_square,
    losses: list[float] | None = None,
    lr: float = 0.2,
) -> TorchEvaluator:
    """Return an evaluator that trains on one batch, and adds every loss to a list."""

    def train(one: nn.Module, optimizer: SGD, training_step: Any, *limits: Any) -> None:
        for _ in range(limits[1] or 4):
            optimizer.zero_grad()
            loss: Tensor = training_step(BATCH, one)
            if losses is not None:
                losses.append(loss.item())
            torch.autograd.backward(loss)
            optimizer.step()

    def evaluate(one: nn.Module) -> float:
        with torch.no_grad():
            return -step(BATCH, one).item()

    optimizer = SGD(model.parameters(), lr=lr)
    return TorchEvaluator(train, optimizer, step, dummy_input=BATCH, evaluating_func=evaluate)


def predict(batch: Tensor, model: nn.Module) -> object:
    """Run a teacher."""
    return model(batch)
