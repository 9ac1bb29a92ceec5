import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD, Optimizer

import nni
from nni.compression.evaluators.deepspeed_evaluator import DeepspeedTorchEvaluator


class AccumulatingEngine:
    """In-memory engine that steps after every second batch."""

    def __init__(self, model: nn.Module, optimizer: Optimizer) -> None:
        self.module = model
        self.optimizer = optimizer
        self.batches = 0
        self.loaded: dict[str, object] = {}

    def backward(self, loss: Tensor) -> None:
        self.batches += 1
        torch.autograd.backward(loss)

    def is_gradient_accumulation_boundary(self) -> bool:
        return self.batches % 2 == 0

    def step(self) -> None:
        if self.is_gradient_accumulation_boundary():
            self.optimizer.step()
            self.optimizer.zero_grad()

    def load_checkpoint(self, **arguments: object) -> None:
        self.loaded = arguments


def training_func(
    engine: AccumulatingEngine, _optimizer: object, step: Any, *_limits: object
) -> None:
    for _ in range(4):
        engine.backward(step(torch.ones(2, 1), engine.module))
        engine.step()


def made(calls: list[dict[str, Any]], **kwargs: Any) -> tuple[nn.Module, DeepspeedTorchEvaluator]:
    def initialize(**arguments: Any) -> tuple[object, ...]:
        engine = AccumulatingEngine(arguments["model"], arguments["optimizer"])
        calls.append({**arguments, "engine": engine})
        return engine, arguments["optimizer"], None, arguments["lr_scheduler"]

    model = nn.Linear(1, 1)
    optimizer = nni.trace(SGD)(model.parameters(), lr=0.1)
    return model, DeepspeedTorchEvaluator(
        training_func,
        lambda batch, one: one(batch).sum(),
        Path("ds.json"),
        optimizer,
        initialize=initialize,
        **kwargs,
    )


def test_tasks_run_where_gradients_are_accumulated() -> None:
    model, evaluator = made([])
    log: list[str] = []
    evaluator.bind_model(model)

    evaluator.patch_optimizer_step([lambda: log.append("before")], [lambda: log.append("after")])
    evaluator.train()

    assert log == ["before", "after"] * 2


def test_the_engine_gets_configuration_parameters_and_checkpoint() -> None:
    calls: list[dict[str, Any]] = []
    model, evaluator = made(calls, resume_from_checkpoint_args={"load_dir": "saved"})
    model.bias.requires_grad_(False)
    evaluator.bind_model(model)

    evaluator.train()
    evaluator.train()

    (call,) = calls
    assert call["config"] == "ds.json"
    assert [id(one) for one in call["model_parameters"]] == [id(model.weight)]
    assert call["engine"].loaded == {"load_dir": "saved"}


def test_parameters_join_before_the_first_training_only() -> None:
    model, evaluator = made([])
    evaluator.bind_model(model)
    evaluator.train()

    with pytest.raises(RuntimeError, match="only before the first training of a binding"):
        evaluator.patch_optim_param_group({"params": [nn.Parameter(torch.ones(1))]})


def test_an_optimizer_of_the_configuration_takes_no_parameters() -> None:
    model = nn.Linear(1, 1)
    evaluator = DeepspeedTorchEvaluator(
        training_func, lambda *_: None, {}, initialize=lambda **_: ()
    )
    evaluator.bind_model(model)

    with pytest.raises(RuntimeError, match="only an optimizer that is passed"):
        evaluator.patch_optim_param_group({"params": []})
    with pytest.raises(RuntimeError, match="no evaluating_func"):
        evaluator.evaluate()


def test_wrong_optimizers_are_refused() -> None:
    with pytest.raises(TypeError, match="optimizer must be a Optimizer or None, got 3"):
        DeepspeedTorchEvaluator(training_func, lambda *_: None, {}, 3)  # type: ignore[arg-type]


@pytest.mark.skipif(
    importlib.util.find_spec("deepspeed") is not None, reason="deepspeed is installed here"
)
def test_the_error_names_the_extra() -> None:
    with pytest.raises(ImportError, match=r"pip install 'nni\[deepspeed\]'"):
        DeepspeedTorchEvaluator(training_func, lambda *_: None, {})
