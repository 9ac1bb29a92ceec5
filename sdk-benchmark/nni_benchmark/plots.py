"""Plots of comparisons by matplotlib."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

from nni_benchmark.comparisons import RankTable
from nni_benchmark.figures import new_figure, save_lines
from nni_benchmark.runs import Runs


def save_regrets(runs: Runs, problem: str, path: Path) -> None:
    """Plot each searcher's median regret on a problem over trials to an image file."""
    figure, axes = new_figure(problem, "trial", "median regret")
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
    save_lines(figure, axes, path)


def save_ranks(table: RankTable, path: Path) -> None:
    """Plot searchers' mean ranks as bars, with the critical difference, to an image file."""
    figure, axes = new_figure(f"{table.group} @{table.after}", "mean rank", "")
    places = range(len(table.searchers))
    axes.barh(places, table.means)
    axes.set_yticks(places, table.searchers)
    axes.invert_yaxis()
    axes.axvline(table.means[0] + table.ranking.critical_difference, linestyle="--")
    figure.tight_layout()
    figure.savefig(path)
