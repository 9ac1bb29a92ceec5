"""Reports of a benchmark: final scores, mean ranks, and scores over trials."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from nni_benchmark.automl.runner import Skipped, TaskResult
from nni_benchmark.automl.tasks import GREATER_IS_BETTER
from nni_benchmark.significance import ranks


def results_only(found: Iterable[TaskResult | Skipped]) -> list[TaskResult]:
    """Return the results without skipped tasks."""
    return [one for one in found if isinstance(one, TaskResult)]


def mean_ranks(results: Sequence[TaskResult]) -> dict[str, dict[str, float]]:
    """Return `{metric: {tuner: mean rank}}`, best is 1, over the folds that all tuners have run.

    Only folds count on which all tuners were run. Tuners that tie share their places evenly, so
    that each metric's ranks sum to `n (n + 1) / 2`.
    """
    tuners = list(dict.fromkeys(result.tuner for result in results))
    cells: dict[tuple[str, str, int], dict[str, float]] = {}
    for result in results:
        key = (result.task.metric, result.task.name, result.fold)
        sign = -1 if result.task.metric in GREATER_IS_BETTER else 1
        cells.setdefault(key, {})[result.tuner] = sign * result.test_score
    sums: dict[str, list[list[float]]] = {}
    for (metric, _, _), losses in cells.items():
        if len(losses) == len(tuners):
            sums.setdefault(metric, []).append(ranks([losses[tuner] for tuner in tuners]))
    return {
        metric: {
            tuner: sum(row[place] for row in rows) / len(rows) for place, tuner in enumerate(tuners)
        }
        for metric, rows in sums.items()
    }


def performances_text(found: Sequence[TaskResult | Skipped]) -> str:
    """Return a text table with one line per result or skipped task, below a header."""
    lines = ["task fold metric tuner score trials"]
    for one in found:
        if isinstance(one, Skipped):
            lines.append(f"{one.task} skipped: {one.reason}")
            continue
        lines.append(
            f"{one.task.name} {one.fold} {one.task.metric} {one.tuner} {one.test_score:.6f} "
            f"{len(one.scores)}"
        )
    return "\n".join(lines) + "\n"


def rankings_text(results: Sequence[TaskResult]) -> str:
    """Return a text table of the tuners' mean ranks, with a column for each metric."""
    by_metric = mean_ranks(results)
    lines = [" ".join(("tuner", *by_metric))]
    tuners = dict.fromkeys(result.tuner for result in results)
    lines += [
        " ".join((tuner, *(f"{table[tuner]:.4f}" for table in by_metric.values())))
        for tuner in tuners
    ]
    return "\n".join(lines) + "\n"


def write_reports(found: Sequence[TaskResult | Skipped], folder: Path) -> Path:
    """Write scores, ranks, JSON and (with matplotlib) plots to `reports/`; return that folder.

    Graphs need matplotlib; without it there are none.
    """
    reports = folder / "reports"
    reports.mkdir(parents=True, exist_ok=True)
    results = results_only(found)
    (reports / "performances.txt").write_text(performances_text(found), "utf-8")
    (reports / "rankings.txt").write_text(rankings_text(results), "utf-8")
    (reports / "results.json").write_text(json.dumps([_row(one) for one in found]), "utf-8")
    try:
        from nni_benchmark.automl.graphs import save_task_graphs
    except ImportError:
        return reports
    save_task_graphs(results, reports)
    return reports


def _row(one: TaskResult | Skipped) -> dict[str, Any]:
    if isinstance(one, Skipped):
        return {"task": one.task, "skipped": one.reason}
    return {
        "task": one.task.name,
        "fold": one.fold,
        "metric": one.task.metric,
        "tuner": one.tuner,
        "test_score": one.test_score,
        "scores": list(one.scores),
        "parameters": one.parameters,
    }
