"""Every evaluator passes the conformance suite that `nni.testing.evaluators` ships.

Those of Lightning and transformers do it in their own modules of unit tests, so that one process
imports each of these packages.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import StepLR

import nni
from nni.compression import (
    DeepspeedTorchEvaluator,
    Evaluator,
    LegacyEvaluator,
    TorchEvaluator,
)
from nni.testing.evaluators import EvaluatorConformance

STEPS = 4
BATCH = 8
INPUTS = torch.linspace(-1, 1, STEPS * BATCH * 3).reshape(-1, 3)
TARGETS = INPUTS.sum(1, keepdim=True)
BATCHES = list(zip(torch.split(INPUTS, BATCH), torch.split(TARGETS, BATCH), strict=True))


def network() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))


def error_of(model: nn.Module) -> float:
    with torch.no_grad():
        return -float((model(INPUTS) - TARGETS).square().mean())


def training_step(batch: tuple[Tensor, Tensor], model: nn.Module) -> Tensor:
    return nn.functional.mse_loss(model(batch[0]), batch[1])


def training_func(
    model: Any,
    optimizer: Any,
    step: Callable[..., Any],
    scheduler: Any,
    max_steps: int | None,
    max_epochs: int | None,
) -> None:
    epochs = max_epochs or (1 if max_steps is None else max_steps)
    for batch in (BATCHES * epochs)[:max_steps]:
        optimizer.zero_grad()
        loss = step(batch, model)
        if hasattr(model, "backward"):
            model.backward(loss)
            model.step()
        else:
            loss.backward()
            optimizer.step()
        scheduler.step()


class TestTorchEvaluator(EvaluatorConformance):
    steps_per_epoch = STEPS

    def make(self) -> tuple[nn.Module, Evaluator]:
        model = network()
        optimizer = nni.trace(SGD)(model.parameters(), lr=0.1, momentum=0.9)
        scheduler = nni.trace(StepLR)(optimizer, step_size=1, gamma=0.9)
        return model, TorchEvaluator(
            training_func, optimizer, training_step, scheduler, INPUTS, error_of
        )


class TestLegacyEvaluator(EvaluatorConformance):
    steps_per_epoch = STEPS

    def make(self) -> tuple[nn.Module, Evaluator]:
        def trainer(model: nn.Module, optimizer: Optimizer, criterion: nn.Module) -> None:
            for inputs, targets in BATCHES:
                optimizer.zero_grad()
                criterion(model(inputs), targets).backward()
                optimizer.step()

        model = network()
        optimizer = nni.trace(SGD)(model.parameters(), lr=0.1, momentum=0.9)
        return model, LegacyEvaluator(trainer, optimizer, nn.MSELoss(), INPUTS, error_of)


class Engine:
    """In-memory form of DeepSpeed's engine: one process, no partition, no accumulation."""

    def __init__(self, model: nn.Module, optimizer: Optimizer) -> None:
        self.module = model
        self.optimizer = optimizer

    def __call__(self, *args: object) -> object:
        return self.module(*args)

    def backward(self, loss: Tensor) -> None:
        torch.autograd.backward(loss)

    def is_gradient_accumulation_boundary(self) -> bool:
        return True

    def step(self) -> None:
        self.optimizer.step()


def initialize(
    model: nn.Module, optimizer: Optimizer, lr_scheduler: object, **_: object
) -> tuple[Engine, Optimizer, None, object]:
    return Engine(model, optimizer), optimizer, None, lr_scheduler


class TestDeepspeedTorchEvaluator(EvaluatorConformance):
    steps_per_epoch = STEPS

    def make(self) -> tuple[nn.Module, Evaluator]:
        model = network()
        optimizer = nni.trace(SGD)(model.parameters(), lr=0.1, momentum=0.9)
        return model, DeepspeedTorchEvaluator(
            training_func,
            training_step,
            {"train_batch_size": BATCH},
            optimizer,
            nni.trace(StepLR)(optimizer, step_size=1, gamma=0.9),
            dummy_input=INPUTS,
            evaluating_func=error_of,
            initialize=initialize,
        )
