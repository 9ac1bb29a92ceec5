"""Ranks and reports of the AutoML benchmark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nni_benchmark.automl.frameworks import TUNERS
from nni_benchmark.automl.results import mean_ranks, write_reports
from nni_benchmark.automl.runner import Skipped, TaskResult
from nni_benchmark.automl.tasks import Task

IRIS = Task("iris", "logloss", folds=1)


def result(tuner: str, score: float, task: Task = IRIS, fold: int = 0) -> TaskResult:
    return TaskResult(tuner, task, fold, (score,), score, {})


@pytest.mark.claim("hpo", 53, 55)
def test_ranks_of_eight_tuners_sum_to_36_also_when_they_tie() -> None:
    scores = {"iris": (1, 2, 3, 4, 5, 6, 7, 8), "wine": (1, 1, 3, 3, 3, 6, 7, 7)}
    results = [
        result(tuner, score, Task(name, "logloss"))
        for name, row in scores.items()
        for tuner, score in zip(TUNERS, row, strict=True)
    ]

    (column,) = mean_ranks(results).values()

    assert sum(column.values()) == pytest.approx(36)


def test_greater_scores_are_better_where_the_metric_says_so() -> None:
    auc = Task("kc2", "auc")

    ranks = mean_ranks([result("a", 0.9, auc), result("b", 0.8, auc)])

    assert ranks == {"auc": {"a": 1.0, "b": 2.0}}


def test_fold_that_not_all_tuners_ran_is_not_ranked() -> None:
    results = [result("a", 1), result("b", 2), result("a", 1, fold=1)]

    assert mean_ranks(results) == {"logloss": {"a": 1.0, "b": 2.0}}


def test_reports_hold_scores_and_two_graphs_a_fold(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    reports = write_reports([result("TPE", 0.5), Skipped("kc2", "gone")], tmp_path)

    assert {path.name for path in reports.iterdir()} == {
        *("performances.txt", "rankings.txt", "results.json"),
        *("iris-fold0-best.png", "iris-fold0-each.png"),
    }
    rows = json.loads((reports / "results.json").read_text())
    assert rows[0]["test_score"] == 0.5
    assert rows[1] == {"task": "kc2", "skipped": "gone"}
