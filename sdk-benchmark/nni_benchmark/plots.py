"""Plots of comparisons by matplotlib."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from nni_benchmark.automl.runner import TaskResult
from nni_benchmark.automl.tasks import GREATER_IS_BETTER
from nni_benchmark.comparisons import RankTable
from nni_benchmark.runs import Runs


def save_regrets(runs: Runs, problem: str, path: Path) -> None:
    """Plot each searcher's median regret on a problem over trials to an image file."""
    figure, axes = _figure(problem, "trial", "median regret")
    shown = False
    for name in runs.searchers:
        of_problem = [run for run in runs if (run.searcher, run.problem) == (name, problem)]
        if not of_problem:
            continue
        trials = min(run.trials for run in of_problem)
        medians = [
            statistics.median(run.regret(after) for run in of_problem)
            for after in range(1, trials + 1)
        ]
        shown = shown or any(value > 0 and math.isfinite(value) for value in medians)
        axes.plot(range(1, trials + 1), medians, label=name)
    if shown:
        axes.set_yscale("log")
    _save(figure, axes, path)


def save_ranks(table: RankTable, path: Path) -> None:
    """Plot searchers' mean ranks as bars, with the critical difference, to an image file."""
    figure, axes = _figure(f"{table.group} @{table.after}", "mean rank", "")
    places = range(len(table.searchers))
    axes.barh(places, table.means)
    axes.set_yticks(places, table.searchers)
    axes.invert_yaxis()
    axes.axvline(table.means[0] + table.ranking.critical_difference, linestyle="--")
    figure.tight_layout()
    figure.savefig(path)


def save_task_graphs(results: Sequence[TaskResult], folder: Path) -> None:
    """Plot scores, and best scores so far, over trials: two images for each fold of each task."""
    keys = dict.fromkeys((result.task, result.fold) for result in results)
    for task, fold in keys:
        better = max if task.metric in GREATER_IS_BETTER else min
        for kind in ("best", "each"):
            figure, axes = _figure(f"{task.name}, fold {fold}", "trial", task.metric)
            for result in results:
                if (result.task, result.fold) != (task, fold):
                    continue
                scores = list(result.scores)
                if kind == "best":
                    scores = list(itertools.accumulate(scores, better))
                axes.plot(range(1, len(scores) + 1), scores, label=result.tuner)
            _save(figure, axes, folder / f"{task.name}-fold{fold}-{kind}.png")


def _figure(title: str, x: str, y: str) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(7, 4.5))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title)
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    return figure, axes


def _save(figure: Figure, axes: Axes, path: Path) -> None:
    axes.legend(fontsize="x-small")
    figure.tight_layout()
    figure.savefig(path)
