"""Searches of the AutoML benchmark on their tasks."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from nni.hpo.registry.factory import validate
from nni_benchmark.automl import runner
from nni_benchmark.automl.architectures import ARCHITECTURES
from nni_benchmark.automl.data_sets import DataUnavailableError, load
from nni_benchmark.automl.frameworks import TUNERS
from nni_benchmark.automl.results import mean_ranks, performances_text
from nni_benchmark.automl.runner import Framework, Skipped, TaskResult, run_benchmark, smaller
from nni_benchmark.automl.tasks import Task

IRIS = Task("iris", "logloss", folds=1)


@pytest.mark.parametrize("tuner", TUNERS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_tuner_of_the_field_has_a_spelling_of_each_space(
    tuner: str, architecture: str
) -> None:
    space = Framework(tuner, architecture).search_space()

    validate("tuner", tuner, {}, space)
    assert space.keys() == ARCHITECTURES[architecture].space.keys()


@pytest.mark.parametrize(("trees", "upper"), [(8, 8), (1, 5), (2_048, 2_048), (100_000, 2_048)])
def test_smaller_space_is_within_the_former_one(trees: int, upper: int) -> None:
    space = smaller(Framework("Random", "random_forest"), trees).search_space()

    assert space["n_estimators"] == {"_type": "randint", "_value": [4, upper]}


def test_unreachable_data_skip_their_task_with_the_reason() -> None:
    def unreachable(task: Task) -> tuple[Any, Any]:
        raise DataUnavailableError(task.name, "no network")

    frameworks = [smaller(Framework("Random", trials=2), 8)]
    tasks = [Task("kc2", "auc"), IRIS]

    found = run_benchmark(frameworks, tasks, load_data=partial(load, fetch=unreachable))

    assert found[0] == Skipped("kc2", "data of task 'kc2' cannot be had: no network")
    assert isinstance(found[1], TaskResult)
    assert "kc2 skipped" in performances_text(found)


@pytest.mark.parametrize("metric", ["auc", "logloss"])
def test_search_improves_the_cross_validation_and_is_scored_on_the_test_part(
    metric: Any,
) -> None:
    task = replace(IRIS, metric=metric)

    found = runner.run_task(smaller(Framework("TPE", trials=5), 12), task, 0, load(task, 0))

    best = max if metric == "auc" else min
    assert len(found.scores) == 5
    assert best(found.scores) != found.scores[0] or len(set(found.scores)) == 1
    assert (found.test_score > 0.9) if metric == "auc" else (found.test_score < 1.0)


def test_time_limit_ends_a_search() -> None:
    framework = smaller(Framework("Random", time_limit_s=1e-9), 8)
    with pytest.raises(ValueError, match="no trial has been told"):
        # Nothing could be tried in a nanosecond.
        runner.run_task(framework, IRIS, 0, load(IRIS, 0))


@pytest.mark.parametrize("advisor", ["Hyperband", "BOHB", "ASHA"])
def test_advisors_search_beside_tuners(advisor: str) -> None:
    frameworks = [smaller(Framework(name, trials=4), 8) for name in (advisor, "Random")]

    found = run_benchmark(frameworks, [IRIS])

    ranks = mean_ranks([one for one in found if isinstance(one, TaskResult)])
    assert set(ranks["logloss"]) == {advisor, "Random"}
    assert isinstance(found[0], TaskResult)
    assert len(found[0].scores) == 4
    assert found[0].parameters.keys() == ARCHITECTURES["random_forest"].space.keys()
