import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from nni.compression.pruning import L1NormPruner
from nni.compression.scheduling.task import Task, TaskResult
from nni.compression.scheduling.task_generator import TaskGenerator

ENTRY = {"op_names": ["0"], "sparse_ratio": 0.5}


class Steps(TaskGenerator):
    """A fixed number of tasks, each from the result of the last one."""

    number = 3

    def init_pending_tasks(self) -> list[Task]:
        return [
            self.new_task(self.folder.origin_model_path, self.folder.origin_masks_path, [ENTRY])
        ]

    def generate_tasks(self, task_result: TaskResult) -> list[Task]:
        if task_result.task_id + 1 == self.number:
            return []
        return [self.new_task(*self.save_result(task_result), [ENTRY])]


def steps(folder: Path, **options: Any) -> Steps:
    return Steps(nn.Sequential(nn.Linear(2, 2)), None, [ENTRY], folder, **options)


def result(task: Task, score: float | None = None) -> TaskResult:
    model, masks, _ = task.load_data()
    with torch.no_grad():
        model.get_parameter("0.weight").fill_(task.task_id)
    return TaskResult(task.task_id, model, masks, masks, score)


def run(generator: TaskGenerator, scores: list[float | None]) -> None:
    for score in scores:
        task = generator.next()
        assert task is not None
        generator.receive_task_result(result(task, score))


@pytest.mark.claim("compression", 45)
@pytest.mark.parametrize(
    ("scores", "mode", "best"),
    [
        ([0.5, 0.9, 0.7], "maximize", 1),
        ([0.5, 0.9, 0.9], "maximize", 2),
        ([0.5, 0.9, 0.7], "minimize", 0),
        ([0.5, 0.9, 0.7], "latest", 2),
        ([None, None, None], "maximize", 2),
        ([0.5, math.nan, 0.4], "maximize", 0),
    ],
)
def test_the_best_result_has_the_best_score(
    tmp_path: Path, scores: list[float | None], mode: Any, best: int
) -> None:
    generator = steps(tmp_path, best_result_mode=mode)

    run(generator, scores)

    found = generator.get_best_result()
    assert found is not None
    task_id, model, masks, score, config_list = found
    assert (task_id, score) == (best, scores[best])
    assert bool((model.get_parameter("0.weight") == best).all())
    assert (masks, config_list) == ({}, [ENTRY])


class WithBaseline(Steps):
    """Tasks of which the first one prunes nothing."""

    def prunes(self, task: Task) -> bool:
        return task.task_id > 0


@pytest.mark.claim("compression", 45)
@pytest.mark.parametrize(
    ("scores", "mode", "best"),
    [
        ([0.9, 0.5, 0.7], "maximize", 2),
        ([0.9, 0.5], "maximize", 1),
        ([0.9], "maximize", 0),
        ([0.1, 0.5, 0.7], "minimize", 1),
        ([0.9, math.nan], "maximize", 1),
    ],
)
def test_a_task_that_prunes_nothing_is_best_only_until_another_one_ends(
    tmp_path: Path, scores: list[float | None], mode: Any, best: int
) -> None:
    generator = WithBaseline(
        nn.Sequential(nn.Linear(2, 2)), None, [ENTRY], tmp_path, best_result_mode=mode
    )

    run(generator, scores)

    found = generator.get_best_result()
    assert found is not None
    assert found[0] == best


@pytest.mark.claim("compression", 45)
def test_there_is_no_best_result_before_the_first_one(tmp_path: Path) -> None:
    generator = steps(tmp_path)

    assert generator.get_best_result() is None
    assert list(tmp_path.iterdir()) == []


@pytest.mark.claim("compression", 46)
def test_only_origin_best_result_and_tasks_are_left(tmp_path: Path) -> None:
    generator = steps(tmp_path)

    run(generator, [0.1, 0.2, 0.3])

    left = sorted(path.name for path in generator.folder.path.iterdir())
    assert left == [".tasks", "best_result", "origin"]
    tasks = json.loads((generator.folder.path / ".tasks").read_text())
    assert [task["status"] for task in tasks.values()] == ["Finished"] * 3


def test_intermediate_results_are_kept_on_request(tmp_path: Path) -> None:
    generator = steps(tmp_path, keep_intermediate_result=True)

    run(generator, [None] * 3)

    kept = {path.name for path in (generator.folder.path / "intermediate_result").iterdir()}
    assert kept == {
        f"{task}_{name}"
        for task in range(3)
        for name in ("compact_model.pth", "compact_model_masks.pth", "config_list.json")
    }


def test_the_file_of_tasks_shows_which_one_runs(tmp_path: Path) -> None:
    generator = steps(tmp_path)

    generator.next()

    tasks = json.loads((generator.folder.path / ".tasks").read_text())
    assert tasks["0"]["status"] == "Running"
    assert generator.next() is None


def test_a_result_of_no_running_task_is_refused(tmp_path: Path) -> None:
    generator = steps(tmp_path)
    task = generator.next()
    assert task is not None
    finished = result(task)
    generator.receive_task_result(finished)

    with pytest.raises(ValueError, match="task_id must be that of a running task, got 0"):
        generator.receive_task_result(finished)


def test_a_wrapped_model_is_refused(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(2, 2))
    L1NormPruner(model, [ENTRY])

    with pytest.raises(TypeError, match="origin_model holds wrappers"):
        Steps(model, None, [ENTRY], tmp_path)
    with pytest.raises(TypeError, match="origin_model must be a"):
        Steps(None, None, [ENTRY], tmp_path)  # type: ignore[arg-type]  # the test


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="best_result_mode must be"):
        steps(tmp_path, best_result_mode="best")
