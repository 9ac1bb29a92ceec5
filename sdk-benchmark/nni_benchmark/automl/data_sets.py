"""Data of tasks: bundled with scikit-learn, or from OpenML."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from nni_benchmark.automl.tasks import Task

_ONE_CLASS: Final = {"iris-versicolor": ("iris", 1), "wine-second": ("wine", 1)}
"""Index of the class that a binary task sets against the others, by data set."""
_UPPER_HALF: Final = {"diabetes-high": "diabetes"}
"""Data sets with the binary target `number > median`."""
BUNDLED: Final = (
    *("breast_cancer", "diabetes", "digits", "iris", "wine"),
    *(*_ONE_CLASS, *_UPPER_HALF),
)
_OPENML_NAMES: Final = {"blood-transfusion": "blood-transfusion-service-center"}
"""Data sets with another name at OpenML."""
_TEST_PART: Final = 0.25


class DataUnavailableError(Exception):
    """Error that a benchmark task's data cannot be obtained."""

    def __init__(self, task: str, reason: str) -> None:
        super().__init__(f"data of task {task!r} cannot be had: {reason}")
        self.task = task


@dataclass(frozen=True, slots=True)
class Data:
    """Train and test arrays of features and targets of one split of a data set."""

    train_x: Any
    """`(rows, features)`, without missing values."""
    train_y: Any
    """`(rows,)`, numbers; for classification 0, 1, ... in the order of the classes."""
    test_x: Any
    test_y: Any


def _bundled(name: str) -> tuple[Any, Any]:
    from sklearn import datasets

    one, chosen = _ONE_CLASS.get(name, (name, None))
    x, y = getattr(datasets, f"load_{_UPPER_HALF.get(one, one)}")(return_X_y=True)
    if name in _UPPER_HALF:
        return x, (y > np.median(y)).astype(int)
    return x, y if chosen is None else (y == chosen).astype(int)


def _from_openml(task: Task) -> tuple[Any, Any]:
    from sklearn.datasets import fetch_openml

    name = _OPENML_NAMES.get(task.name, task.name)
    try:
        frame = fetch_openml(name=name, version=1, as_frame=False, parser="liac-arff", n_retries=1)
    except (OSError, ValueError) as error:
        raise DataUnavailableError(task.name, f"OpenML: {error}") from error
    return _numbers(frame.data), _target(frame.target, regression=task.regression)


def load(task: Task, fold: int, *, fetch: Callable[[Task], tuple[Any, Any]] = _from_openml) -> Data:
    """Load a task's data; split off a quarter for tests, by the fold as seed, stratified by class.

    Args:
        task: whose data.
        fold: counts from 0.
        fetch: gives features and target of data that are not bundled, as `Data` has them, or
            raises `DataUnavailableError`.

    Raises:
        DataUnavailableError: it is not bundled, and OpenML does not answer or has it not.
        ImportError: scikit-learn is missing.
    """
    from sklearn.model_selection import train_test_split

    x, y = _bundled(task.name) if task.name in BUNDLED else fetch(task)
    train_x, test_x, train_y, test_y = train_test_split(
        x, y, test_size=_TEST_PART, random_state=fold, stratify=None if task.regression else y
    )
    return Data(train_x, train_y, test_x, test_y)


def _numbers(columns: Any) -> Any:  # noqa: ANN401 - an array of any type
    """Return features as numbers: categories by index, missing values by the median."""
    filled = [_column(columns[:, place]) for place in range(columns.shape[1])]
    return np.stack(filled, axis=1)


def _column(values: Any) -> Any:  # noqa: ANN401 - as above
    try:
        numbers = values.astype(float)
    except (TypeError, ValueError):
        known = sorted({str(value) for value in values})
        return np.array([known.index(str(value)) for value in values], dtype=float)
    gaps = np.isnan(numbers)
    return np.where(gaps, np.median(numbers[~gaps]) if not gaps.all() else 0.0, numbers)


def _target(values: Any, *, regression: bool) -> Any:  # noqa: ANN401 - as above
    if regression:
        return values.astype(float)
    return np.unique(values.astype(str), return_inverse=True)[1]
