from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

import nni
from nni.compression.evaluators.legacy_evaluator import LegacyEvaluator
from nni.compression.pruning import SlimPruner, TaylorFOWeightPruner

BATCHES = torch.ones(3, 4, 2)
TARGET = torch.zeros(4, 1)


def train(model: nn.Module, optimizer: Optimizer, criterion: Callable[..., Tensor]) -> None:
    for batch in BATCHES:
        optimizer.zero_grad()
        torch.autograd.backward(criterion(model(batch), TARGET))
        optimizer.step()


def model_and_evaluator(trainer: Any = train, **kwargs: Any) -> tuple[nn.Module, LegacyEvaluator]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 4), nn.Linear(4, 1))
    optimizer = nni.trace(SGD)(model.parameters(), lr=0.01)
    return model, LegacyEvaluator(trainer, optimizer, nn.MSELoss(), **kwargs)


@pytest.mark.parametrize(
    "limits", [{"max_epochs": 2}, {"max_steps": 5}, {"max_steps": 9, "max_epochs": 2}]
)
def test_a_trainer_with_an_epoch_gets_its_number(limits: dict[str, int]) -> None:
    epochs: list[int] = []

    def trainer(
        model: nn.Module, criterion: Callable[..., Tensor], optimizer: Optimizer, epoch: int
    ) -> None:
        epochs.append(epoch)
        train(model, optimizer, criterion)

    model, evaluator = model_and_evaluator(trainer)
    evaluator.bind_model(model)

    evaluator.train(**limits)

    assert epochs == [0, 1]


def test_arguments_of_other_names_are_passed_by_position() -> None:
    seen: list[object] = []
    model, evaluator = model_and_evaluator(lambda *args: seen.extend(args))
    evaluator.bind_model(model)

    evaluator.train(max_epochs=1)

    assert [type(one) for one in seen] == [nn.Sequential, SGD, nn.MSELoss]


def test_a_limit_of_steps_passes_handlers_of_errors() -> None:
    def careful(model: nn.Module, optimizer: Optimizer, criterion: Callable[..., Tensor]) -> None:
        try:
            train(model, optimizer, criterion)
        except Exception as error:  # as some trainers do
            raise AssertionError("a limit is no error") from error

    model, evaluator = model_and_evaluator(careful)
    steps: list[int] = []
    evaluator.bind_model(model)
    evaluator.patch_optimizer_step([], [lambda: steps.append(1)])

    evaluator.train(max_steps=4)

    assert len(steps) == 4


def test_a_trainer_without_steps_runs_for_one_epoch() -> None:
    passes: list[int] = []

    def collect(model: nn.Module, _optimizer: object, _criterion: object) -> None:
        passes.append(1)
        model(BATCHES[0])

    model, evaluator = model_and_evaluator(collect)
    evaluator.bind_model(model)

    evaluator.train(max_steps=4)

    assert passes == [1]


def test_a_patched_loss_gets_inputs_and_target() -> None:
    model, evaluator = model_and_evaluator()
    batches: list[Any] = []
    evaluator.bind_model(model)

    def remember(loss: Tensor, batch: Any) -> Tensor:
        batches.append(batch)
        return loss

    evaluator.patch_loss(remember)
    evaluator.train(max_steps=1)

    inputs, target = batches[0]
    assert inputs is not BATCHES
    assert torch.equal(inputs, BATCHES[0])
    assert target is TARGET


def test_a_fine_tuner_replaces_the_trainer() -> None:
    tuned: list[nn.Module] = []
    model, evaluator = model_and_evaluator(finetuner=tuned.append)
    evaluator.bind_model(model)

    evaluator.finetune()

    assert tuned == [model]


def test_an_evaluation_needs_its_function() -> None:
    model, evaluator = model_and_evaluator()
    evaluator.bind_model(model)

    with pytest.raises(RuntimeError, match="pass evaluator="):
        evaluator.evaluate()


def test_wrong_arguments_are_refused() -> None:
    optimizer = SGD([nn.Parameter(torch.ones(1))], lr=0.1)

    with pytest.raises(TypeError, match="trainer must be a function, got 3"):
        LegacyEvaluator(3, optimizer, nn.MSELoss())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="criterion must be a function, got None"):
        LegacyEvaluator(train, optimizer, None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="traced_optimizer must be an optimizer, such as"):
        LegacyEvaluator(train, nn.MSELoss(), nn.MSELoss())  # type: ignore[arg-type]


def test_pruners_train_by_the_callbacks_of_nni_2() -> None:
    model = nn.Sequential(nn.Conv2d(1, 4, 1), nn.BatchNorm2d(4), nn.Flatten(), nn.LazyLinear(1))
    inputs, target = torch.rand(4, 1, 2, 2), torch.zeros(4, 1)
    model(inputs)

    def trainer(one: nn.Module, optimizer: Optimizer, criterion: Callable[..., Tensor]) -> None:
        optimizer.zero_grad()
        torch.autograd.backward(criterion(one(inputs), target))
        optimizer.step()

    evaluator = LegacyEvaluator(trainer, SGD(model.parameters(), lr=0.1), nn.MSELoss())
    slim = [{"op_types": ["BatchNorm2d"], "total_sparsity": 0.5}]
    taylor = [{"op_types": ["Conv2d"], "sparsity": 0.5}]

    pruner = SlimPruner(model, slim, evaluator, 2, regular_scale=0.1)
    _, norm_masks = pruner.compress()
    pruner.unwrap_model()
    _, masks = TaylorFOWeightPruner(model, taylor, evaluator, 2).compress()

    assert norm_masks["1"]["weight"].sum() == 2
    assert masks["0"]["weight"].sum() == 2
