import re
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.base.pruner import Pruner
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.pruning import (
    AGPPruner,
    FPGMPruner,
    L1NormPruner,
    LevelPruner,
    LinearPruner,
    TaylorPruner,
)
from nni.compression.pruning.scheduled_pruner import ScheduledPruner

ENTRY = {"op_names": ["0"], "sparse_ratio": 0.8}


class Recorder:
    """Model, its evaluator, and the masked part of a weight after each optimizer step."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(10, 10), nn.ReLU(), nn.Linear(10, 2))
        self.masked: list[float] = []
        self.masks: list[Tensor] = []
        self.hooks: list[int] = []
        """Number of hooks of the weight's gradient in each step."""
        self.pruner: Pruner | None = None

    def train(
        self, model: nn.Module, optimizer: SGD, step: Any, _: Any, max_steps: int | None, *__: Any
    ) -> None:
        """Train, and record the mask after each step."""
        for _step in range(max_steps or 8):
            optimizer.zero_grad()
            loss: Tensor = step(torch.randn(4, 10), model)
            torch.autograd.backward(loss)
            assert self.pruner is not None
            weight = self.pruner.get_modules_wrapper()["0"].parameter("weight")
            self.hooks.append(len(weight._backward_hooks or {}))
            optimizer.step()
            mask = self.pruner.get_masks()["0"]["weight"]
            self.masks.append(mask)
            self.masked.append(round(1 - float(mask.mean()), 4))

    def evaluator(self) -> TorchEvaluator:
        """Return an evaluator of the model."""
        optimizer = SGD(self.model.parameters(), lr=0.05)
        return TorchEvaluator(
            self.train, optimizer, lambda batch, model: model(batch).square().mean()
        )

    def level(self) -> LevelPruner:
        """Return a pruner of single weights."""
        self.pruner = found = LevelPruner(self.model, [ENTRY], self.evaluator())
        return found


def test_agp_raises_the_ratio_after_every_interval() -> None:
    recorder = Recorder()

    _, masks = AGPPruner(recorder.level(), 2, 4).compress(max_steps=9)

    # 0.8 * (1 - (1 - k / 4)^3) of 100 weights, rounded down.
    assert recorder.masked == [0, 0.46, 0.46, 0.7, 0.7, 0.78, 0.78, 0.8, 0.8]
    assert int(masks["0"]["weight"].sum()) == 20


def test_linear_raises_the_ratio_in_equal_increments() -> None:
    recorder = Recorder()

    LinearPruner(recorder.level(), 2, 4).compress()

    assert recorder.masked == [0, 0.2, 0.2, 0.4, 0.4, 0.6, 0.6, 0.8]


def test_what_is_masked_stays_masked() -> None:
    recorder = Recorder()

    LinearPruner(recorder.level(), 1, 8).compress()

    for earlier, later in pairwise(recorder.masks):
        assert bool((later <= earlier).all())


@pytest.mark.parametrize("kind", [L1NormPruner, FPGMPruner, TaylorPruner])
def test_pruners_of_channels_are_scheduled(kind: type[Pruner]) -> None:
    recorder = Recorder()
    arguments = {"training_steps": 1} if kind is TaylorPruner else {}
    pruner = recorder.pruner = kind(recorder.model, [ENTRY], recorder.evaluator(), **arguments)

    AGPPruner(pruner, 2, 3).compress(max_steps=6)

    assert [recorder.masked[step] for step in (1, 3, 5)] == [0.5, 0.7, 0.8]


def test_observations_of_an_interval_do_not_count_in_the_next_one() -> None:
    recorder = Recorder()
    pruner = recorder.pruner = TaylorPruner(recorder.model, [ENTRY], recorder.evaluator(), 1)

    LinearPruner(pruner, 2, 3).compress(max_steps=8)

    assert recorder.hooks == [1] * 6 + [0] * 2


def test_the_pruner_and_the_evaluator_are_free_again() -> None:
    recorder = Recorder()
    pruner = recorder.level()

    AGPPruner(pruner, 1, 2).compress(max_steps=2)

    assert pruner.ratio_factor == 1
    assert pruner.evaluator is not None
    pruner.evaluator.bind_model(recorder.model)
    pruner.evaluator.unbind_model()
    assert AGPPruner(pruner, 1, 2).unwrap_model() is recorder.model


def test_thresholds_and_bounds_grow_too() -> None:
    recorder = Recorder()
    entry = {"op_names": ["0"], "sparse_threshold": 0.2}
    pruner = recorder.pruner = LevelPruner(recorder.model, [entry], recorder.evaluator())

    LinearPruner(pruner, 1, 2).compress(max_steps=2)

    weight = pruner.get_modules_wrapper()["0"].parameter("weight").detach().abs()
    assert 0 < recorder.masked[0] < recorder.masked[1]
    assert float(weight[recorder.masks[1].bool()].min()) >= 0.2


def test_too_few_steps_are_refused_before_the_training() -> None:
    recorder = Recorder()

    with pytest.raises(ValueError, match=re.escape("max_steps must be >= 8")):
        AGPPruner(recorder.level(), 2, 4).compress(max_steps=7)

    assert recorder.masked == []


def test_a_training_that_ends_early_is_an_error() -> None:
    recorder = Recorder()

    with pytest.raises(RuntimeError, match="8 optimizer steps, but 9 updates of the masks need 9"):
        AGPPruner(recorder.level(), 1, 9).compress()


@pytest.mark.parametrize(
    ("arguments", "error", "problem"),
    [
        ({"interval_steps": 0}, ValueError, "interval_steps must be >= 1, got 0"),
        ({"total_times": 1.5}, TypeError, "total_times must be an int, got 1.5"),
        ({"pruner": 3}, TypeError, "pruner must be a pruner"),
    ],
)
@pytest.mark.parametrize("kind", [AGPPruner, LinearPruner])
def test_a_bad_argument_is_named(
    kind: type[ScheduledPruner], arguments: dict[str, Any], error: type[Exception], problem: str
) -> None:
    given = {"pruner": Recorder().level(), "interval_steps": 1, "total_times": 1, **arguments}

    with pytest.raises(error, match=problem):
        kind(**given)
