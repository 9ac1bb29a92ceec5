"""Data sets of the AutoML benchmark."""

from __future__ import annotations

import pytest

from nni_benchmark.automl.data_sets import load
from nni_benchmark.automl.tasks import Task

IRIS = Task("iris", "logloss", folds=1)


def test_folds_are_different_splits_and_repeat() -> None:
    first, again, other = load(IRIS, 0), load(IRIS, 0), load(IRIS, 1)

    assert (first.train_x == again.train_x).all()
    assert (first.test_x != other.test_x).any()


@pytest.mark.parametrize(
    ("name", "share"), [("diabetes-high", 1 / 2), ("iris-versicolor", 1 / 3), ("wine-second", 0.4)]
)
def test_questions_about_bundled_data_have_two_answers(name: str, share: float) -> None:
    data = load(Task(name, "auc"), 0)

    assert set(data.train_y) == {0, 1}
    assert data.test_y.mean() == pytest.approx(share, abs=0.02)
