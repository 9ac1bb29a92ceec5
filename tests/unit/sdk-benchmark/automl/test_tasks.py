"""Lists of tasks of the AutoML benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from nni_benchmark.automl.tasks import BENCHMARKS, benchmark


@pytest.mark.claim("hpo", 53)
def test_nnismall_is_the_union_of_three_times_eight_tasks() -> None:
    parts = [BENCHMARKS[f"nnismall-{part}"] for part in ("regression", "binary", "multiclass")]

    assert [len(part) for part in parts] == [8, 8, 8]
    assert BENCHMARKS["nnismall"] == sum(parts, ())
    assert len({task.name for task in BENCHMARKS["nnismall"]}) == 24
    # As published: 16 folds of rmse, 18 of auc, 14 of logloss.
    metrics = [task.metric for task in BENCHMARKS["nnismall"]]
    assert [metrics.count(one) for one in ("rmse", "auc", "logloss")] == [8, 9, 7]


@pytest.mark.parametrize("text", ["{}", "[]", "[x]", "[{name: a}]", "[{name: a, metric: f1}]"])
def test_wrong_list_of_tasks_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tasks.yaml"
    file.write_text(text)

    with pytest.raises(ValueError, match=r"tasks\.yaml"):
        benchmark(str(file))
    with pytest.raises(ValueError, match="benchmark must be one of nnivalid"):
        benchmark("nnibig")
