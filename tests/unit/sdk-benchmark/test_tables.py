"""Recorded tables of the package."""

from __future__ import annotations

import math

import pytest

from nni.hpo.simulation.curve_table import Curve, CurveTable, GridAxis
from nni_benchmark.tables import (
    CURVES,
    DATA_SETS,
    MODELS,
    GridTable,
    data_folder,
    load_curves,
    load_grid,
    table_problems,
)

MEGABYTE = 2**20


def test_all_recorded_files_are_small() -> None:
    assert sum(path.stat().st_size for path in data_folder().iterdir()) < MEGABYTE


@pytest.mark.parametrize("name", CURVES)
def test_learning_curves_are_whole_and_differ(name: str) -> None:
    table = load_curves(name)

    assert table.steps == 27
    assert len({curve.values[-1] for curve in table.curves}) > 10
    assert all(curve.step_s > 0 for curve in table.curves)


def test_every_model_was_measured_on_every_data_set() -> None:
    names = {problem.name for problem in table_problems()}

    assert names == {
        "digits",
        *(f"{data}-{model}" for data in DATA_SETS for model in (*MODELS, "model")),
    }
    assert all(math.isfinite(problem.optimum) for problem in table_problems())


def test_branches_below_branches_are_looked_up() -> None:
    digits = load_grid("digits")
    svm = {"_name": "svm", "C": 1.0, "kernel": {"_name": "rbf", "gamma": 0.05}}

    assert set(digits.leaves) == {"svm/linear", "svm/rbf", "svm/poly", "rf", "mlp"}
    assert 0.018333 <= digits.loss({"model": svm}) < 0.1
    assert digits.optimum == 0.018333


def test_joined_models_answer_as_each_alone() -> None:
    joined = next(one for one in table_problems() if one.name == "wine-model")
    alone = load_grid("wine-svm")
    point = {"C": 10.0, "gamma": 0.01, "kernel": "rbf"}

    assert joined.losses({"model": {"_name": "svm", **point}}) == (alone.loss(point),)


def test_unknown_branch_is_refused_with_those_there_are() -> None:
    axis = GridAxis("x", "uniform", (0.0, 1.0), (0.0, 1.0))
    leaf = CurveTable((axis,), (Curve((1.0,), 0.1), Curve((2.0,), 0.1)), "minimize")
    table = GridTable({}, {"a": leaf})

    assert table.loss({"m": {"_name": "a", "x": 0.9}}) == 2.0
    with pytest.raises(ValueError, match=r"must be one of \['a'\], got 'b'"):
        table.loss({"m": {"_name": "b", "x": 0.9}})
    assert GridTable.from_json(table.to_json()) == table


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "Expecting"),
        ("[]", "indices"),
        ("{}", "it has no 'space'"),
        ('{"space": {}}', "it has no 'leaves'"),
        ('{"space": {}, "leaves": []}', "must be objects"),
        ('{"space": {}, "leaves": {"a": {}}}', "no table of curves: 'form'"),
    ],
)
def test_text_that_is_no_table_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=f"the text is no table of losses: .*{reason}"):
        GridTable.from_json(text)
