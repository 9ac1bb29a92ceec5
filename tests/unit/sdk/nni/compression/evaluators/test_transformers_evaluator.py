import gc
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.optim import SGD
from torch.optim.lr_scheduler import StepLR

import nni
from nni.compression.base.evaluator import Evaluator
from nni.compression.evaluators.transformers_evaluator import TransformersEvaluator
from nni.testing.evaluators import EvaluatorConformance

STEPS = 4
BATCH = 8
INPUTS = torch.linspace(-1, 1, STEPS * BATCH * 3).reshape(-1, 3)
TARGETS = INPUTS.sum(1, keepdim=True)


@pytest.fixture(autouse=True, scope="module")
def _few_collected_objects() -> None:
    """Keep the modules from the garbage collector, which the Trainer runs after each training.

    They stay frozen, as those of all tests are: a collection of all would stop a later test.
    """
    gc.freeze()


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


class Table(torch.utils.data.Dataset[Mapping[str, Tensor]]):
    """Rows of inputs and labels by name."""

    def __len__(self) -> int:
        return len(INPUTS)

    def __getitem__(self, index: int) -> Mapping[str, Tensor]:
        return {"inputs": INPUTS[index], "labels": TARGETS[index]}


class Head(nn.Module):
    """Model that computes its own loss, as those of transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.network = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))

    def forward(self, inputs: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        output = self.network(inputs)
        if labels is None:
            return {"output": output}
        return {"loss": nn.functional.mse_loss(output, labels), "output": output}


def traced_trainer(model: nn.Module, given: Any = None, **kwargs: Any) -> transformers.Trainer:
    defaults = {
        "num_train_epochs": 1,
        "per_device_train_batch_size": BATCH,
        "learning_rate": 0.1,
        "use_cpu": True,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "metric_for_best_model": "loss",
        "greater_is_better": False,
    }
    arguments = transformers.TrainingArguments("build", **{**defaults, **kwargs})
    return nni.trace(transformers.Trainer)(
        model, arguments, train_dataset=Table(), eval_dataset=Table(), **(given or {})
    )


class TestConformance(EvaluatorConformance):
    steps_per_epoch = STEPS

    def make(self) -> tuple[nn.Module, Evaluator]:
        model = Head()
        return model, TransformersEvaluator(traced_trainer(model), {"inputs": INPUTS})


def test_given_optimizers_are_built_again_for_the_bound_model() -> None:
    model = Head()
    optimizer = nni.trace(SGD)(model.parameters(), lr=0.5)
    scheduler = nni.trace(StepLR)(optimizer, step_size=1, gamma=0.1)
    trainer = traced_trainer(model, {"optimizers": (optimizer, scheduler)})
    evaluator = TransformersEvaluator(trainer)
    rates: list[float] = []

    evaluator.bind_model(model)
    evaluator.patch_optim_param_group({"params": [nn.Parameter(torch.ones(1))], "lr": 1.0})
    evaluator.patch_optimizer_step(
        [lambda: rates.append(evaluator._made.optimizer.param_groups[0]["lr"])], []
    )
    evaluator.train(max_steps=2)

    assert rates == pytest.approx([0.5, 0.05])
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_the_loss_of_an_evaluation_is_not_patched() -> None:
    model = Head()
    evaluator = TransformersEvaluator(traced_trainer(model, eval_strategy="epoch"))
    evaluator.bind_model(model)
    before = evaluator.evaluate()
    calls: list[object] = []

    def nothing(loss: Tensor, batch: object) -> Tensor:
        calls.append(batch)
        return loss * 0

    evaluator.patch_loss(nothing)
    evaluator.train(max_epochs=1)

    assert evaluator.evaluate() == before < 0
    assert len(calls) == STEPS


@pytest.mark.parametrize(("better", "sign"), [(True, 1), (False, -1)])
def test_the_best_metric_is_the_one_of_the_arguments(*, better: bool, sign: int) -> None:
    model = Head()
    trainer = traced_trainer(
        model,
        {"compute_metrics": lambda _: {"score": 3.0}},
        metric_for_best_model="score",
        greater_is_better=better,
    )
    evaluator = TransformersEvaluator(trainer)
    evaluator.bind_model(model)

    assert evaluator.evaluate() == 3.0 * sign


def test_a_metric_named_default_comes_first() -> None:
    model = Head()
    given = {"compute_metrics": lambda _: {"default": 2.0}}
    evaluator = TransformersEvaluator(traced_trainer(model, given))
    evaluator.bind_model(model)

    assert evaluator.evaluate() == 2.0


def test_an_evaluation_needs_a_default_metric() -> None:
    model = Head()
    evaluator = TransformersEvaluator(
        traced_trainer(model, metric_for_best_model=None, greater_is_better=None)
    )
    evaluator.bind_model(model)

    with pytest.raises(KeyError, match="must have the key 'default'"):
        evaluator.evaluate()


def test_callbacks_start_from_their_first_state_in_each_binding() -> None:
    model = Head()
    stopping = transformers.EarlyStoppingCallback(early_stopping_patience=1)
    trainer = traced_trainer(model, {"callbacks": [stopping]}, eval_strategy="epoch")
    evaluator = TransformersEvaluator(trainer)
    counters: list[int] = []

    for _ in range(2):
        evaluator.bind_model(model)
        counters.append(stopping.early_stopping_patience_counter)
        stopping.early_stopping_patience_counter = 7  # as a training leaves it
        evaluator.unbind_model()

    assert counters == [0, 0]


def test_a_model_factory_is_refused() -> None:
    arguments = transformers.TrainingArguments("build", use_cpu=True, report_to="none")
    factory: Any = Head
    trainer = nni.trace(transformers.Trainer)(None, arguments, model_init=factory)

    with pytest.raises(ValueError, match="must be given a model, not model_init"):
        TransformersEvaluator(trainer)


def test_only_a_traced_trainer_is_taken() -> None:
    with pytest.raises(TypeError, match=r"must be made by nni\.trace.*got 3"):
        TransformersEvaluator(3)  # type: ignore[arg-type]
