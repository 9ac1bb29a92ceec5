"""Tasks and benchmarks: data sets with their metrics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import yaml

Metric: TypeAlias = Literal["auc", "logloss", "rmse", "r2"]

GREATER_IS_BETTER: Final = frozenset({"auc", "r2"})


@dataclass(frozen=True, slots=True)
class Task:
    """Benchmark task: a data set, the metric to optimise, and the number of splits."""

    name: str
    """Name of the data set, of scikit-learn or OpenML."""
    metric: Metric
    folds: int = 2
    """Number of train-test splits, each with a search of its own."""

    @property
    def regression(self) -> bool:
        """True if the task is a regression: its metric is `rmse` or `r2`."""
        return self.metric in {"rmse", "r2"}


def _tasks(metric: Metric, *names: str) -> tuple[Task, ...]:
    return tuple(Task(name, metric) for name in names)


_REGRESSION: Final = _tasks(
    "rmse", "cholesterol", "liver-disorders", "kin8nm", "cpu_small", "titanic_2", "boston",
    "stock", "space_ga",
)  # fmt: skip
_BINARY: Final = _tasks(
    "auc", "Australian", "blood-transfusion", "christine", "credit-g", "kc1", "kr-vs-kp",
    "phoneme", "sylvine",
)  # fmt: skip
# jasmine has two classes.
_MULTICLASS: Final = (
    *_tasks("logloss", "car", "cnae-9", "dilbert", "fabert"),
    *_tasks("auc", "jasmine"),
    *_tasks("logloss", "mfeat-factors", "segment", "vehicle"),
)

BENCHMARKS: Final[dict[str, tuple[Task, ...]]] = {
    "nnivalid": (Task("kc2", "auc"), Task("iris", "logloss"), Task("cholesterol", "rmse")),
    "nnismall-regression": _REGRESSION,
    "nnismall-binary": _BINARY,
    "nnismall-multiclass": _MULTICLASS,
    "nnismall": (*_REGRESSION, *_BINARY, *_MULTICLASS),
    "offline": (
        *_tasks("auc", "breast_cancer", "diabetes-high", "iris-versicolor", "wine-second"),
        Task("iris", "logloss"),
        Task("wine", "logloss"),
        Task("digits", "logloss"),
        Task("diabetes", "rmse"),
    ),
}
"""Benchmarks by name; the data sets of `offline` are part of scikit-learn."""


def benchmark(name: str) -> tuple[Task, ...]:
    """Return the tasks of a named benchmark or of a YAML file; raise ValueError for others.

    Args:
        name: a known one, or the path of a YAML file: a list of `name`, `metric` and perhaps
            `folds`.

    Raises:
        ValueError: there is none of this name, or the file says something else.
    """
    if name in BENCHMARKS:
        return BENCHMARKS[name]
    path = Path(name)
    if path.suffix not in {".yml", ".yaml"} or not path.is_file():
        known = ", ".join(BENCHMARKS)
        raise ValueError(f"benchmark must be one of {known}, or a YAML file; got {name!r}")
    content = yaml.safe_load(path.read_text("utf-8"))
    if not isinstance(content, list) or not content:
        raise ValueError(f"{path} must hold a list of tasks, got {content!r:.100}")
    return tuple(_task(item, path) for item in content)


def _task(item: Any, path: Path) -> Task:  # noqa: ANN401 - content of a file
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise ValueError(f"{path}: a task must be a dict with a name, got {item!r:.100}")  # noqa: TRY004 - one type for all faults of an input
    metric, folds = item.get("metric"), item.get("folds", 2)
    if metric not in {"auc", "logloss", "rmse", "r2"}:
        raise ValueError(f"{path}: metric must be auc, logloss, rmse or r2, got {metric!r}")
    if not isinstance(folds, int) or folds < 1:
        raise ValueError(f"{path}: folds must be an integer >= 1, got {folds!r}")
    return Task(item["name"], metric, folds)
