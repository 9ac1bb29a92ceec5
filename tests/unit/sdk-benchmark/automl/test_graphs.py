"""Graphs of scores over trials."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni_benchmark.automl.runner import TaskResult
from nni_benchmark.automl.tasks import Metric, Task

pytest.importorskip("matplotlib")


@pytest.mark.parametrize(
    ("metric", "scores", "same"),
    [("auc", (0.9, 0.5), False), ("logloss", (0.9, 0.5), True)],
)
def test_graphs_of_best_and_each_score_are_the_same_where_no_trial_is_worse_than_the_last(
    tmp_path: Path, metric: Metric, scores: tuple[float, ...], same: bool
) -> None:
    from nni_benchmark.automl.graphs import save_task_graphs

    save_task_graphs([TaskResult("TPE", Task("iris", metric), 0, scores, 0.5, {})], tmp_path)

    best, each = ((tmp_path / f"iris-fold0-{kind}.png").read_bytes() for kind in ("best", "each"))
    assert (best == each) is same
