from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.base.evaluator import Evaluator


class OneStep(Evaluator):
    """Evaluator of one parameter whose training step uses a closure."""

    def __init__(self, metric: object = 1.0) -> None:
        super().__init__()
        self.metric = metric

    def prepare(self, model: nn.Module) -> None:
        self.optimizer = SGD(model.parameters(), lr=0.1)
        self.attach(self.optimizer)

    def run_training(self, max_steps: int | None, max_epochs: int | None) -> None:
        def closure() -> float:
            self.optimizer.zero_grad()
            loss: Tensor = self.patched_result(self.bound_model(torch.ones(1, 1)).sum(), "batch")
            torch.autograd.backward(loss)
            return loss.item()

        for _ in range(max_steps or 1):
            self.optimizer.step(closure)

    def run_evaluation(self) -> object:
        return self.metric


def bound(metric: object = 1.0) -> OneStep:
    evaluator = OneStep(metric)
    evaluator.bind_model(nn.Linear(1, 1))
    return evaluator


def test_tasks_before_a_step_run_after_its_closure() -> None:
    evaluator = bound()
    seen: list[float] = []

    def before() -> None:
        weight = next(evaluator.bound_model.parameters())
        assert weight.grad is not None
        seen.append(weight.grad.item())
        weight.grad.zero_()

    start = next(evaluator.bound_model.parameters()).item()
    evaluator.patch_optimizer_step([before], [])
    evaluator.train(max_steps=2)

    assert seen == [1.0, 1.0]
    assert next(evaluator.bound_model.parameters()).item() == start


def test_reverted_tasks_run_no_more() -> None:
    evaluator = bound()
    calls: list[str] = []
    evaluator.patch_optimizer_step(
        [lambda: calls.append("before")], [lambda: calls.append("after")]
    )

    evaluator.revert_optimizer_step()
    evaluator.train(max_steps=1)

    assert calls == []


def test_steps_outside_of_a_binding_run_no_tasks() -> None:
    evaluator = bound()
    optimizer = evaluator.optimizer
    calls: list[str] = []
    evaluator.unbind_model()

    evaluator.bind_model(nn.Linear(1, 1))
    evaluator.patch_optimizer_step([], [lambda: calls.append("after")])
    optimizer.step()

    assert calls == []


@pytest.mark.parametrize(
    "result", [torch.tensor(2.0), (torch.tensor(2.0), "rest"), {"loss": torch.tensor(2.0), "n": 1}]
)
def test_a_result_keeps_its_form(result: Any) -> None:
    evaluator = bound()
    evaluator.patch_loss(lambda loss, _: loss + 1)

    patched = evaluator.patched_result(result, None)

    assert type(patched) is type(result)
    loss = patched["loss"] if isinstance(patched, dict) else patched
    assert (loss[0] if isinstance(loss, tuple) else loss).item() == 3
    if not isinstance(patched, Tensor):
        assert len(patched) == 2


@pytest.mark.parametrize("metric", [2, 2.0, torch.tensor(2.0), {"default": 2, "loss": 0.1}])
def test_a_metric_is_a_float(metric: object) -> None:
    found = bound(metric).evaluate()

    assert (found, type(found)) == (2.0, float)


@pytest.mark.parametrize("metric", [None, "2", True, {"default": None}])
def test_any_other_metric_is_refused(metric: object) -> None:
    with pytest.raises(TypeError, match="an evaluation must return a number, got"):
        bound(metric).evaluate()


def test_metrics_without_a_default_are_refused() -> None:
    with pytest.raises(KeyError, match="must have the key 'default', got 'loss'"):
        bound({"loss": 1}).evaluate()
    with pytest.raises(KeyError, match="got none"):
        bound({}).evaluate()


def test_groups_join_an_optimizer_that_is_attached_later() -> None:
    evaluator = bound()
    extra = nn.Parameter(torch.ones(1))
    evaluator.patch_optim_param_group({"params": [extra]})
    later = SGD([nn.Parameter(torch.ones(1))], lr=0.1)

    evaluator.attach(later)
    evaluator.attach(later)

    assert [len(one.param_groups) for one in (evaluator.optimizer, later)] == [2, 2]
