from typing import Any

import torch
from torch import nn

from nni.compression import TorchEvaluator
from nni.compression.pruning.epoch_training import EpochTraining


def evaluator_of(model: nn.Module, calls: list[Any]) -> TorchEvaluator:
    return TorchEvaluator(
        lambda *arguments: calls.append(arguments[4:]),
        torch.optim.SGD(model.parameters(), lr=0.1),
        lambda batch, one: one(batch).sum(),
        evaluating_func=lambda _: float(len(calls)),
    )


def test_a_trainer_gets_the_arguments_of_nni_by_name() -> None:
    calls: list[Any] = []
    model = nn.Linear(1, 1)
    optimizer, criterion = torch.optim.SGD(model.parameters(), lr=0.1), nn.MSELoss()

    def trainer(one: Any, *, optimizer: Any, criterion: Any, epoch: Any) -> None:
        calls.append((one, optimizer, criterion, epoch))

    training = EpochTraining(None, trainer, optimizer, criterion)
    training.epoch(model, 2)

    assert calls == [(model, optimizer, criterion, 2)]
    assert training.can_train
    assert not training.can_run


def test_an_evaluator_trains_one_epoch_and_is_free_afterwards() -> None:
    calls: list[Any] = []
    model = nn.Linear(1, 1)
    evaluator = evaluator_of(model, calls)

    EpochTraining(evaluator).epoch(model, None)

    assert calls == [(None, 1)]
    evaluator.bind_model(model)  # would fail if it were bound


def test_the_model_runs_without_gradients() -> None:
    model = nn.Linear(1, 1)
    seen: list[bool] = []

    def run(one: nn.Module) -> None:
        seen.append(one(torch.ones(1, 1)).requires_grad)

    EpochTraining(forward_runner=run).forward(model)
    EpochTraining(evaluator_of(model, [])).forward(model)

    assert seen == [False]


def test_a_trainer_without_an_optimizer_cannot_train() -> None:
    assert not EpochTraining(trainer=lambda *_: None).can_train
    assert not EpochTraining().can_run
