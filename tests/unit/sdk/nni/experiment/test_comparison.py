"""Two experiments side by side, as values."""

from __future__ import annotations

from typing import Any

import pytest

from nni.experiment.comparison import (
    ComparedExperiment,
    Difference,
    TunerRow,
    best_so_far,
    common_objective,
    config_differences,
    curve_rows,
    number_of,
    objective_of,
    regret_rows,
    tuner_rows,
)
from nni.experiment.errors import RefusedError


@pytest.mark.parametrize(
    ("value", "metric", "number"),
    [
        (0.5, "default", 0.5),
        ({"default": 1, "loss": 2}, "default", 1.0),
        ({"default": 1, "loss": 2}, "loss", 2.0),
        ({"loss": 2}, "default", None),
        (0.5, "loss", None),
        (float("nan"), "default", None),
        (True, "default", None),
        ("0.5", "default", None),
        (None, "default", None),
        (10**400, "default", None),
    ],
)
def test_number_of_a_result(value: Any, metric: str, number: float | None) -> None:
    assert number_of(value, metric) == number


@pytest.mark.parametrize(
    ("config", "objective"),
    [
        ({}, ("default", "maximize")),
        ({"tuner": {"classArgs": {"optimize_mode": "minimize"}}}, ("default", "minimize")),
        ({"advisor": {"classArgs": {"optimize_mode": "minimize"}}}, ("default", "minimize")),
        ({"tuner": {"name": "Random"}}, ("default", "maximize")),
        ({"objectives": [{"metric": "loss", "mode": "minimize"}]}, ("loss", "minimize")),
    ],
)
def test_objective_is_that_of_the_configuration(
    config: dict[str, Any], objective: tuple[str, str]
) -> None:
    assert objective_of(config) == objective


def test_different_objectives_need_a_choice_of_the_user() -> None:
    loss = {"objectives": [{"metric": "loss", "mode": "minimize"}]}

    with pytest.raises(RefusedError, match="name one with --metric"):
        common_objective({}, loss)
    with pytest.raises(RefusedError, match="give --mode"):
        common_objective({}, loss, "loss")
    assert common_objective({}, loss, "loss", "minimize") == ("loss", "minimize")


def test_differences_of_configurations_have_paths() -> None:
    first = {"seed": 1, "tuner": {"name": "TPE", "classArgs": {"a": 1}}, "same": [1]}
    second = {"seed": 2, "tuner": {"name": "Random"}, "same": [1], "debug": True}

    assert list(config_differences(first, second)) == [
        Difference("seed", 1, 2),
        Difference("tuner.name", "TPE", "Random"),
        Difference("tuner.classArgs", {"a": 1}, None),
        Difference("debug", None, True),
    ]


def test_values_of_different_types_differ() -> None:
    assert list(config_differences({"x": 1}, {"x": True})) == [Difference("x", 1, True)]


def test_best_so_far_skips_trials_without_a_result() -> None:
    assert best_so_far([None, 2.0, None, 3.0, 1.0], "minimize") == [None, 2.0, 2.0, 2.0, 1.0]
    assert best_so_far([2.0, 3.0, 1.0], "maximize") == [2.0, 3.0, 3.0]


def test_regret_is_the_distance_to_the_best_of_both() -> None:
    first = ComparedExperiment("a", {}, (5.0, 4.0, 3.0))
    second = ComparedExperiment("b", {}, (None, 1.0))

    rows = regret_rows(first, second, "minimize")

    assert [(row.trials, row.best, row.regret) for row in rows] == [
        (1, (5.0, None), (4.0, None)),
        (2, (4.0, 1.0), (3.0, 0.0)),
        (3, (3.0, None), (2.0, None)),
    ]


def test_regret_of_many_trials_has_few_rows() -> None:
    first = ComparedExperiment("a", {}, tuple(float(one) for one in range(1234)))

    rows = regret_rows(first, ComparedExperiment("b", {}, ()), "maximize")

    assert [row.trials for row in rows] == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 1234]
    assert rows[-1].regret == (0.0, None)


def test_without_results_there_is_no_regret() -> None:
    empty = ComparedExperiment("a", {}, ())

    assert regret_rows(empty, empty, "maximize") == []
    assert regret_rows(empty, ComparedExperiment("b", {}, (None,)), "maximize") == []


def test_curves_have_few_rows_with_both_ends() -> None:
    assert curve_rows([1.0, 2.0], [3.0]) == [(1, 1.0, 3.0), (2, 2.0, None)]
    assert curve_rows([], []) == []
    rows = curve_rows([0.0] * 95, [0.0] * 42)
    assert len(rows) <= 12
    assert {42, 95} <= {row[0] for row in rows}


def test_row_of_each_tuner_has_the_regret_to_the_best_of_all() -> None:
    results = [("TPE", 3.0), ("Random", 2.0), ("TPE", 1.0), ("Random", None), ("", 0.5)]

    rows = tuner_rows(results, "minimize")

    assert rows == [
        TunerRow("TPE", 2, 2, 1.0, 0.5, 2.0),
        TunerRow("Random", 2, 1, 2.0, 1.5, 2.0),
        TunerRow("", 1, 1, 0.5, 0.0, 0.5),
    ]


def test_tuner_without_results_has_no_regret() -> None:
    assert tuner_rows([("TPE", None)], "maximize") == [TunerRow("TPE", 1, 0, None, None, None)]
