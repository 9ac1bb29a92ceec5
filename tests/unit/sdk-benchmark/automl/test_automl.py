"""The benchmark on data sets: tasks, spaces, runner, reports."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nni.hpo.registry.factory import validate
from nni.hpo.registry.registrations import register, unregister
from nni_benchmark.automl import runner
from nni_benchmark.automl.architectures import ARCHITECTURES
from nni_benchmark.automl.data_sets import DataUnavailableError, load
from nni_benchmark.automl.frameworks import TUNERS, frameworks_of, read_frameworks
from nni_benchmark.automl.results import mean_ranks, performances_text, write_reports
from nni_benchmark.automl.runner import Framework, Skipped, TaskResult, run_benchmark, smaller
from nni_benchmark.automl.tasks import BENCHMARKS, Task, benchmark
from nni_benchmark.command import main

IRIS = Task("iris", "logloss", folds=1)


def result(tuner: str, score: float, task: Task = IRIS, fold: int = 0) -> TaskResult:
    return TaskResult(tuner, task, fold, (score,), score, {})


@pytest.mark.claim("hpo", 53)
def test_nnismall_is_the_union_of_three_times_eight_tasks() -> None:
    parts = [BENCHMARKS[f"nnismall-{part}"] for part in ("regression", "binary", "multiclass")]

    assert [len(part) for part in parts] == [8, 8, 8]
    assert BENCHMARKS["nnismall"] == sum(parts, ())
    assert len({task.name for task in BENCHMARKS["nnismall"]}) == 24
    # As published: 16 folds of rmse, 18 of auc, 14 of logloss.
    metrics = [task.metric for task in BENCHMARKS["nnismall"]]
    assert [metrics.count(one) for one in ("rmse", "auc", "logloss")] == [8, 9, 7]


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


@pytest.mark.parametrize("tuner", TUNERS)
@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_tuner_of_the_field_has_a_spelling_of_each_space(
    tuner: str, architecture: str
) -> None:
    space = Framework(tuner, architecture).search_space()

    validate("tuner", tuner, {}, space)
    assert space.keys() == ARCHITECTURES[architecture].space.keys()


@pytest.mark.parametrize(
    ("depth", "leaves", "expected"), [(0, 0, (None, None)), (4, 1, (4, 2)), (8, 9, (8, 9))]
)
def test_bounds_of_trees_that_scikit_learn_refuses_are_mapped(
    depth: int, leaves: int, expected: tuple[int | None, int | None]
) -> None:
    parameters = {
        "n_estimators": 4,
        "max_depth": depth,
        "max_leaf_nodes": leaves,
        "min_samples_leaf": 1,
        "min_samples_split": 2,
    }

    model = ARCHITECTURES["random_forest"].model(parameters, False, 0)

    assert (model.max_depth, model.max_leaf_nodes) == expected


def test_layers_are_a_list_or_a_place_in_the_list_of_lists() -> None:
    parameters: dict[str, Any] = {
        "learning_rate_init": 0.1,
        "alpha": 0.1,
        "momentum": 0.5,
        "beta_1": 1.0,
        "tol": 0.1,
        "max_iter": 2,
    }

    models = [
        ARCHITECTURES["mlp"].model({**parameters, "hidden_layer_sizes": sizes}, False, 0)[-1]
        for sizes in ([16, 16], 4)
    ]

    assert models[0].hidden_layer_sizes == models[1].hidden_layer_sizes == (16, 16)
    assert models[0].beta_1 < 1


def test_unreachable_data_skip_their_task_with_the_reason() -> None:
    def unreachable(task: Task) -> tuple[Any, Any]:
        raise DataUnavailableError(task.name, "no network")

    frameworks = [smaller(Framework("Random", trials=2), 8)]
    tasks = [Task("kc2", "auc"), IRIS]

    found = run_benchmark(frameworks, tasks, load_data=partial(load, fetch=unreachable))

    assert found[0] == Skipped("kc2", "data of task 'kc2' cannot be had: no network")
    assert isinstance(found[1], TaskResult)
    assert "kc2 skipped" in performances_text(found)


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


@pytest.mark.claim("hpo", 54)
def test_registered_tuner_is_named_in_a_framework_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    class_name = "nni.hpo.tuners.random_search.RandomTuner"
    register({"algoType": "tuner", "builtinName": "Demo", "className": class_name})
    file = tmp_path / "frameworks.yaml"
    file.write_text("Mine:\n  extends: NNI\n  params: {tuner_type: Demo, trial_limit: 2}\n")
    output = tmp_path / "results"
    tasks = tmp_path / "tasks.yml"
    tasks.write_text("- {name: iris, metric: logloss, folds: 1}\n")

    line = ["automl", "Mine", "Demo", "--frameworks", str(file), "--benchmark", str(tasks)]

    status = main([*line, "--trials", "2", "--trees", "8", "--output", str(output)])

    assert status == 0
    assert "iris 0 logloss Mine" in (output / "reports" / "performances.txt").read_text()
    # Both are random search with one seed, and tie.
    rankings = (output / "reports" / "rankings.txt").read_text()
    assert rankings == "tuner logloss\nMine 1.5000\nDemo 1.5000\n"
    assert "reports are in" in capsys.readouterr().out
    unregister("Demo")


@pytest.mark.parametrize("advisor", ["Hyperband", "BOHB", "ASHA"])
def test_advisors_search_beside_tuners(advisor: str) -> None:
    frameworks = [smaller(Framework(name, trials=4), 8) for name in (advisor, "Random")]

    found = run_benchmark(frameworks, [IRIS])

    ranks = mean_ranks([one for one in found if isinstance(one, TaskResult)])
    assert set(ranks["logloss"]) == {advisor, "Random"}
    assert isinstance(found[0], TaskResult)
    assert len(found[0].scores) == 4
    assert found[0].parameters.keys() == ARCHITECTURES["random_forest"].space.keys()


def test_part_of_a_budget_is_that_part_of_the_training() -> None:
    forest, network = ARCHITECTURES["random_forest"], ARCHITECTURES["mlp"]

    assert forest.cheaper({"n_estimators": 270}, 1 / 27) == {"n_estimators": 10}
    assert forest.cheaper({"n_estimators": 10}, 1 / 27) == {"n_estimators": 4}
    assert network.cheaper({"max_iter": 99, "tol": 0.1}, 1.0) == {"max_iter": 99, "tol": 0.1}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[]", "must hold a dict"),
        ("A: 3", "extends NNI"),
        ("A: {extends: other}", "extends NNI"),
        ("A: {params: {tuner: TPE}}", "params must be of"),
        ("A: {params: {limit_type: days}}", "limit_type must be"),
        ("A: {params: {tuner_type: Nope}}", "tuner name must be one of"),
    ],
)
def test_wrong_framework_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    file = tmp_path / "frameworks.yaml"
    file.write_text(text)

    with pytest.raises(ValueError, match=reason):
        read_frameworks(file)


def test_bare_names_take_the_limits_of_the_command() -> None:
    default = Framework("Random", "mlp", 7, 9.0)

    (framework,) = frameworks_of(["TPE"], {}, default)

    assert (framework.tuner, framework.architecture, framework.trials) == ("TPE", "mlp", 7)
    assert len(frameworks_of([], {}, default)) == 8


@pytest.mark.parametrize("text", ["{}", "[]", "[x]", "[{name: a}]", "[{name: a, metric: f1}]"])
def test_wrong_list_of_tasks_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tasks.yaml"
    file.write_text(text)

    with pytest.raises(ValueError, match=r"tasks\.yaml"):
        benchmark(str(file))
    with pytest.raises(ValueError, match="benchmark must be one of nnivalid"):
        benchmark("nnibig")


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
