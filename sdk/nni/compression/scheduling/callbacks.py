"""Callbacks that train and evaluate a model: functions of the model, or an evaluator."""

from collections.abc import Callable
from typing import Any

from torch import nn

from nni.compression.base.evaluator import Evaluator

Finetuner = Callable[[nn.Module], Any] | Evaluator
"""`(model)`, which trains the model in place; or an evaluator, which fine-tunes it."""
Scorer = Callable[[nn.Module], float] | Evaluator
"""`(model) -> float`, larger is better; or an evaluator, which evaluates it."""


def check_callback(name: str, value: object) -> None:
    """Raise TypeError unless a value is a function, an evaluator or None.

    Args:
        name: name of the argument, for the error.
        value: the value.

    Raises:
        TypeError: it is something else.
    """
    if value is not None and not callable(value) and not isinstance(value, Evaluator):
        raise TypeError(f"{name} must be a function of the model or an evaluator, got {value!r}")


def learn_names(evaluator: object, model: nn.Module) -> None:
    """Bind and unbind an `Evaluator`, so that it knows its parameters by name; skip others.

    Args:
        evaluator: an evaluator; other values are ignored.
        model: the model whose parameters its optimizers have.

    Raises:
        ValueError: its optimizers have parameters that the model lacks.
    """
    if isinstance(evaluator, Evaluator):
        evaluator.bind_model(model)
        evaluator.unbind_model()


def finetune(finetuner: Finetuner, model: nn.Module) -> None:
    """Fine-tune a model in place by a function, or by an evaluator bound to it meanwhile.

    Args:
        finetuner: function or evaluator.
        model: the model, which may be wrapped.
    """
    if not isinstance(finetuner, Evaluator):
        finetuner(model)
        return
    finetuner.bind_model(model)
    try:
        finetuner.finetune()
    finally:
        finetuner.unbind_model()


def score(scorer: Scorer, model: nn.Module) -> float:
    """Return a model's score by a function, or by an evaluator bound to it meanwhile.

    Args:
        scorer: function or evaluator.
        model: the model, which may be wrapped.

    Raises:
        TypeError: the function returns no number.
    """
    if not isinstance(scorer, Evaluator):
        found = scorer(model)
        try:
            return float(found)
        except (TypeError, ValueError) as error:
            raise TypeError(f"the evaluator must return a number, got {found!r}") from error
    scorer.bind_model(model)
    try:
        return scorer.evaluate()
    finally:
        scorer.unbind_model()
