"""Graphs of a benchmark on data sets: scores over trials, for each fold of each task."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

from nni_benchmark.automl.runner import TaskResult
from nni_benchmark.automl.tasks import GREATER_IS_BETTER
from nni_benchmark.figures import new_figure, save_lines


def save_task_graphs(results: Sequence[TaskResult], folder: Path) -> None:
    """Plot scores, and best scores so far, over trials: two images for each fold of each task."""
    keys = dict.fromkeys((result.task, result.fold) for result in results)
    for task, fold in keys:
        better = max if task.metric in GREATER_IS_BETTER else min
        for kind in ("best", "each"):
            figure, axes = new_figure(f"{task.name}, fold {fold}", "trial", task.metric)
            for result in results:
                if (result.task, result.fold) != (task, fold):
                    continue
                scores = list(result.scores)
                if kind == "best":
                    scores = list(itertools.accumulate(scores, better))
                axes.plot(range(1, len(scores) + 1), scores, label=result.tuner)
            save_lines(figure, axes, folder / f"{task.name}-fold{fold}-{kind}.png")
