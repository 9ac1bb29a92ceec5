from collections.abc import Callable
from typing import Any, ClassVar

import pytest
import torch
from torch import nn
from torch.optim import SGD

from nni.compression.base.evaluator import Evaluator
from nni.testing.evaluators import EvaluatorConformance

BATCHES = torch.linspace(-1, 1, 2 * 4 * 3).reshape(2, 4, 3)


class OwnLoop(Evaluator):
    """Evaluator whose defects are chosen."""

    def __init__(self, *defects: str) -> None:
        super().__init__(BATCHES[0])
        self.defects = defects
        self.optimizers: list[SGD] = []

    def prepare(self, model: nn.Module) -> None:
        if "keeps its optimizer" not in self.defects or not self.optimizers:
            self.optimizers.append(SGD(model.parameters(), lr=0.1, momentum=0.9))
        if "runs no tasks" not in self.defects:
            self.attach(self.optimizers[-1])

    def run_training(self, max_steps: int | None, max_epochs: int | None) -> None:
        if "ignores limits" in self.defects:
            max_steps = None
        epochs = max_epochs or max_steps or 1
        for batch in (list(BATCHES) * epochs)[:max_steps]:
            self.optimizers[-1].zero_grad()
            loss = self.bound_model(batch).square().mean()
            if "ignores patches" not in self.defects:
                loss = self.patched_result(loss, batch)
            loss.backward()
            self.optimizers[-1].step()

    def run_evaluation(self) -> object:
        return 0.0


class Suite(EvaluatorConformance):
    steps_per_epoch = 2
    defects: ClassVar[tuple[str, ...]] = ()

    def make(self) -> tuple[nn.Module, Evaluator]:
        return nn.Sequential(nn.Linear(3, 2)), OwnLoop(*self.defects)


def suite(defect: str) -> Suite:
    made = Suite()
    vars(made)["defects"] = (defect,)
    return made


DEFECTS: dict[str, Callable[[Any], None]] = {
    "keeps its optimizer": Suite.test_each_binding_starts_anew,
    "runs no tasks": Suite.test_tasks_run_around_each_step,
    "ignores limits": Suite.test_steps_are_limited,
    "ignores patches": Suite.test_a_patched_loss_is_what_is_minimised,
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_fails_its_test(defect: str) -> None:
    with pytest.raises(AssertionError):
        DEFECTS[defect](suite(defect))


@pytest.mark.parametrize("test", [name for name in dir(Suite) if name.startswith("test_")])
def test_an_evaluator_without_defects_passes(test: str) -> None:
    assert getattr(Suite(), test)() is None
