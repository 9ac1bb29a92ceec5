from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import SGD

from nni.compression.base.module_wrapper import ModuleWrapper
from nni.compression.evaluators.torch_evaluator import TorchEvaluator
from nni.compression.pruning import (
    ActivationMeanRankPruner,
    L1NormPruner,
    LevelPruner,
    TaylorPruner,
)
from nni.compression.scheduling.growth_generators import AGPTaskGenerator, LinearTaskGenerator
from nni.compression.scheduling.pruning_scheduler import PruningScheduler
from nni.compression.scheduling.task import Task, TaskResult
from nni.compression.scheduling.task_generator import TaskGenerator

HALF = [{"op_names": ["0"], "sparse_ratio": 0.5}]
INPUT = torch.ones(2, 4)


def model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))


class Once(TaskGenerator):
    """One task."""

    def init_pending_tasks(self) -> list[Task]:
        return [self.new_task(self.folder.origin_model_path, self.folder.origin_masks_path, HALF)]

    def generate_tasks(self, task_result: TaskResult) -> list[Task]:
        return []


class Recorder:
    """Order of what a scheduler does, and the weights at each event."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.weights: list[Tensor] = []
        self.wrapped: list[bool] = []
        recorder = self

        class Pruner(L1NormPruner):
            def calculate_metrics(self) -> Any:
                recorder.add("pruner", self.bound_model)
                return super().calculate_metrics()

        self.pruner = Pruner(None, None)

    def add(self, event: str, one: nn.Module) -> None:
        """Record an event, and before it a speedup if the model has become smaller."""
        weight = one.get_submodule("0").weight.detach().clone()
        smaller = bool(self.weights) and weight.shape != self.weights[-1].shape
        for name in ["speedup", event] if smaller else [event]:
            self.events.append(name)
            self.wrapped.append(any(isinstance(module, ModuleWrapper) for module in one.modules()))
            self.weights.append(weight)

    def finetune(self, one: nn.Module) -> None:
        self.add("finetune", one)
        with torch.no_grad():
            for parameter in one.parameters():
                parameter.add_(1)

    def evaluate(self, one: nn.Module) -> float:
        self.add("evaluate", one)
        return float(len(self.events))


@pytest.mark.claim("compression", 44)
def test_a_step_prunes_removes_finetunes_and_evaluates(tmp_path: Path) -> None:
    recorder = Recorder()
    generator = Once(model(), None, HALF, tmp_path)

    PruningScheduler(
        recorder.pruner, generator, recorder.finetune, True, INPUT, recorder.evaluate
    ).compress()

    assert recorder.events == ["pruner", "speedup", "finetune", "evaluate"]
    assert recorder.wrapped == [True, False, False, False]
    best = generator.get_best_result()
    assert best is not None
    assert best[1].get_parameter("0.weight").shape == (4, 4)
    assert (best[2], best[3]) == ({}, 4.0)


def test_without_a_speedup_masks_hold_in_finetuning_and_evaluation(tmp_path: Path) -> None:
    recorder = Recorder()
    origin = model()
    generator = Once(origin, None, HALF, tmp_path)

    PruningScheduler(
        recorder.pruner, generator, recorder.finetune, evaluator=recorder.evaluate
    ).compress()

    assert recorder.events == ["pruner", "finetune", "evaluate"]
    assert recorder.wrapped == [True, True, True]
    best = generator.get_best_result()
    assert best is not None
    _, found, masks, _, _ = best
    assert not any(isinstance(module, ModuleWrapper) for module in found.modules())
    assert int(masks["0"]["bias"].sum()) == 4
    assert not recorder.weights[-1][masks["0"]["bias"] == 0].any()
    assert torch.equal(
        origin.get_parameter("0.weight"), model().get_parameter("0.weight")
    )  # the given model is not changed


@pytest.mark.claim("compression", 44)
def test_a_step_with_reset_finetunes_prunes_restores_and_evaluates(tmp_path: Path) -> None:
    recorder = Recorder()
    generator = Once(model(), None, HALF, tmp_path)
    scheduler = PruningScheduler(
        recorder.pruner,
        generator,
        recorder.finetune,
        evaluator=recorder.evaluate,
        reset_weight=True,
    )
    task = generator.next()
    assert task is not None

    result = scheduler.run_one_step(task)

    assert recorder.events == ["finetune", "pruner", "evaluate", "evaluate"]
    kept = result.pruner_generated_masks["0"]["bias"] == 1
    assert torch.equal(recorder.weights[-1][kept], model()[0].weight[kept])
    assert torch.equal(recorder.weights[-2][kept], (model()[0].weight + 1)[kept])
    assert (result.score, result.state) == (4.0, {"score_before_reset": 3.0})


def test_masks_grow_and_stay_from_task_to_task(tmp_path: Path) -> None:
    generator = AGPTaskGenerator(3, model(), HALF, log_dir=tmp_path)
    scheduler = PruningScheduler(LevelPruner(None, None), generator, lambda one: None)
    masks = []

    while (task := generator.next()) is not None:
        result = scheduler.run_one_step(task)
        masks.append(result.pruner_generated_masks["0"]["weight"])
        generator.receive_task_result(result)

    assert [int((one == 0).sum()) for one in masks] == [0, 11, 15, 16]
    for one, following in pairwise(masks):
        assert not (following.bool() & ~one.bool()).any()


def test_masks_of_the_origin_stay_though_the_first_task_prunes_nothing(tmp_path: Path) -> None:
    mask = torch.ones(8, 4)
    mask[5:] = 0
    origin_masks = {"0": {"weight": mask, "bias": mask[:, 0].clone()}}
    generator = LinearTaskGenerator(1, model(), HALF, origin_masks, tmp_path)
    scheduler = PruningScheduler(L1NormPruner(None, None), generator)
    task = generator.next()
    assert task is not None

    result = scheduler.run_one_step(task)

    found = result.pruner_generated_masks["0"]["weight"]
    assert found is not None
    assert torch.equal(found, mask)


def test_speedups_reach_the_ratio_of_the_original(tmp_path: Path) -> None:
    config_list = [{"op_names": ["0"], "sparsity": 0.5}]
    generator = AGPTaskGenerator(3, model(), config_list, log_dir=tmp_path)

    PruningScheduler(L1NormPruner(None, None), generator, None, True, INPUT).compress()

    best = generator.get_best_result()
    assert best is not None
    assert best[1].get_parameter("0.weight").shape == (4, 4)
    assert best[1].get_parameter("2.weight").shape == (3, 4)


class Sum(nn.Module):
    """Two layers whose outputs are added."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.other = nn.Linear(4, 8), nn.Linear(4, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, features: Tensor) -> Tensor:
        return self.head(self.one(features) + self.other(features))


def test_layers_that_depend_on_each_other_shrink_together(tmp_path: Path) -> None:
    torch.manual_seed(0)
    config_list = [{"op_names": ["one", "other"], "sparsity": 0.5}]
    pruner = L1NormPruner(None, None, mode="dependency_aware", dummy_input=INPUT)
    generator = LinearTaskGenerator(2, Sum(), config_list, log_dir=tmp_path)

    PruningScheduler(pruner, generator, speedup=True, dummy_input=INPUT).compress()

    best = generator.get_best_result()
    assert best is not None
    assert best[1].get_parameter("one.weight").shape == (4, 4)
    assert best[1].get_parameter("head.weight").shape == (2, 4)


def evaluator_of(one: nn.Module) -> TorchEvaluator:
    def train(
        trained: nn.Module, optimizer: SGD, step: Any, _: Any, max_steps: int | None, *__: Any
    ) -> None:
        for _step in range(max_steps or 2):
            optimizer.zero_grad()
            step(INPUT, trained).backward()
            optimizer.step()

    return TorchEvaluator(
        train,
        SGD(one.parameters(), lr=0.1),
        lambda batch, trained: trained(batch).square().mean(),
        dummy_input=INPUT,
        evaluating_func=lambda trained: -float(trained(INPUT).detach().square().mean()),
    )


@pytest.mark.parametrize("kind", [TaylorPruner, ActivationMeanRankPruner])
def test_an_evaluator_trains_and_evaluates_the_smaller_models(tmp_path: Path, kind: Any) -> None:
    origin = model()
    evaluator = evaluator_of(origin)
    pruner = kind(None, None, evaluator, 2)
    generator = AGPTaskGenerator(2, origin, HALF, log_dir=tmp_path, best_result_mode="latest")

    PruningScheduler(pruner, generator, evaluator=evaluator, speedup=True).compress()

    best = generator.get_best_result()
    assert best is not None
    assert best[1].get_parameter("0.weight").shape == (4, 4)
    assert best[3] is not None


def test_wrong_arguments_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    pruner, generator = L1NormPruner(None, None), Once(model(), None, HALF, tmp_path)

    with pytest.raises(ValueError, match="dummy_input is missing"):
        PruningScheduler(pruner, generator, speed_up=True)
    with pytest.raises(TypeError, match="pruner must be a pruner"):
        PruningScheduler(L1NormPruner, generator)  # type: ignore[arg-type]  # the test
    with pytest.raises(TypeError, match="task_generator must be a TaskGenerator"):
        PruningScheduler(pruner, pruner)  # type: ignore[arg-type]  # the test
    with pytest.raises(TypeError, match="evaluator must be a function"):
        PruningScheduler(pruner, generator, evaluator=0.5)  # type: ignore[arg-type]  # the test
    assert list(tmp_path.iterdir()) == []


def test_a_failure_leaves_the_pruner_without_wrappers_in_the_model(tmp_path: Path) -> None:
    generator = Once(model(), None, HALF, tmp_path)
    pruner = L1NormPruner(None, None)

    def fail(_: nn.Module) -> None:
        raise OSError("no data")

    with pytest.raises(OSError, match="no data"):
        PruningScheduler(pruner, generator, fail).compress()

    assert not pruner.is_wrapped
