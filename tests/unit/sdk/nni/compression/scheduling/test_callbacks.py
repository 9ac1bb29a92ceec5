from typing import Any

import pytest
from torch import nn
from torch.optim import SGD

from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.scheduling.callbacks import check_callback, finetune, learn_names, score


def evaluator_of(model: nn.Module, trained: list[nn.Module]) -> TorchEvaluator:
    def train(one: nn.Module, *_: Any) -> None:
        trained.append(one)

    return TorchEvaluator(
        train,
        SGD(model.parameters(), lr=0.1),
        lambda batch, one: one(batch),
        evaluating_func=lambda one: float(one.get_parameter("weight").shape[1]),
    )


def test_functions_get_the_model() -> None:
    model = nn.Linear(3, 1)
    trained: list[nn.Module] = []

    finetune(trained.append, model)

    assert trained == [model]
    assert score(lambda one: 2, model) == 2.0


def test_an_evaluator_trains_and_evaluates_another_model_of_the_same_names() -> None:
    first, second = nn.Linear(3, 1), nn.Linear(4, 1)
    trained: list[nn.Module] = []
    evaluator = evaluator_of(first, trained)

    learn_names(evaluator, first)
    finetune(evaluator, second)

    assert trained == [second]
    assert score(evaluator, second) == 4.0


def test_an_evaluator_of_another_model_is_refused() -> None:
    with pytest.raises(ValueError, match="the optimizer has 2 parameters that the model lacks"):
        learn_names(evaluator_of(nn.Linear(1, 1), []), nn.Linear(1, 1))


def test_a_score_must_be_a_number() -> None:
    with pytest.raises(TypeError, match="the evaluator must return a number, got None"):
        score(lambda _: None, nn.Linear(1, 1))  # type: ignore[arg-type, return-value]  # the test


def test_a_callback_must_be_callable() -> None:
    check_callback("finetuner", None)

    with pytest.raises(TypeError, match=r"finetuner must be a function of the model .*, got 3"):
        check_callback("finetuner", 3)
