from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from nni.hpo.simulation.curve_table import Curve, CurveTable, GridAxis, tabulate

RATE = GridAxis("rate", "loguniform", (1e-4, 1.0), (1e-4, 1e-2, 1.0))
KIND = GridAxis("kind", "choice", ("a", "b"), ("a", "b"))


def table() -> CurveTable:
    """Six curves, of which curve n is [n, n + 0.5]."""
    curves = tuple(Curve((float(n), n + 0.5), 1.0 + n) for n in range(6))
    return CurveTable((RATE, KIND), curves, about="made up")


@pytest.mark.parametrize(
    ("value", "place"),
    [(1e-4, 0), (1e-9, 0), (0.99e-3, 0), (1.01e-3, 1), (0.0999, 1), (0.2, 2), (7.0, 2), (0, 0)],
)
def test_nearest_point_is_found_on_a_logarithmic_scale(value: float, place: int) -> None:
    assert RATE.index(value) == place


@pytest.mark.parametrize(("value", "place"), [(0, 0), (1.4, 1), (1.6, 2), (99, 2), (-99, 0)])
def test_nearest_point_is_found_on_a_linear_scale(value: float, place: int) -> None:
    assert GridAxis("x", "quniform", (0, 2, 1), (0, 1, 2)).index(value) == place


@pytest.mark.parametrize("value", ["c", None, 0])
def test_an_option_that_does_not_exist_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="kind must be one of"):
        KIND.index(value)


@pytest.mark.parametrize("value", ["1", None, True, math.nan])
def test_what_is_no_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="rate must be a number"):
        RATE.index(value)


def test_curves_are_found_by_configuration() -> None:
    found = [table().curve({"rate": r, "kind": k}).values[0] for r in (1e-4, 1.0) for k in "ab"]

    assert found == [0, 1, 4, 5]


def test_what_is_no_axis_is_passed_over_and_what_is_missing_refused() -> None:
    assert table().curve({"rate": 1.0, "kind": "a", "TRIAL_BUDGET": 3}).values[0] == 4
    with pytest.raises(ValueError, match="kind must be given"):
        table().curve({"rate": 1.0})


def test_table_knows_its_space_its_length_and_its_best() -> None:
    assert table().search_space == {
        "rate": {"_type": "loguniform", "_value": [1e-4, 1.0]},
        "kind": {"_type": "choice", "_value": ["a", "b"]},
    }
    assert (table().steps, table().best_value) == (2, 5.5)
    assert replace(table(), optimize_mode="minimize").best_value == 0.5


def test_a_table_survives_its_file(tmp_path: Path) -> None:
    made = table()
    diverged = replace(made, curves=(Curve((0.0, math.nan), 0.125), *made.curves[1:]))
    diverged.save(tmp_path / "t.json")

    loaded = CurveTable.load(tmp_path / "t.json")

    assert loaded.axes == diverged.axes
    assert loaded.curves[1:] == diverged.curves[1:]
    assert math.isnan(loaded.curves[0].values[1])
    assert loaded.curves[0].step_s == 0.125
    assert (loaded.about, loaded.optimize_mode, loaded.step) == ("made up", "maximize", "epoch")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", table().to_json().replace('"form": 1', '"form": 9'), "null"]
)
def test_a_text_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no table of curves"):
        CurveTable.from_json(text)


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"curves": ()}, "must be 6"),
        ({"axes": ()}, "must be 0|must be 1"),
        ({"optimize_mode": "best"}, "optimize_mode"),
        (
            {"curves": (*table().curves[:5], Curve((1.0,), 1.0))},
            "same number of steps",
        ),
        ({"axes": (replace(RATE, type="odd"), KIND)}, "odd"),
        ({"axes": (replace(RATE, values=()),), "curves": ()}, "must be 0"),
        ({"curves": (Curve((), 1.0),) * 6}, "at least one"),
        ({"axes": (RATE, replace(KIND, range=({"_name": "a"}, "b")))}, "nested"),
    ],
)
def test_parts_that_do_not_fit_are_refused(changes: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        replace(table(), **changes)


def test_tabulate_trains_at_every_point_and_takes_the_time() -> None:
    clock = iter(range(0, 1000, 6))
    seen: list[dict[str, Any]] = []

    def train(parameters: dict[str, Any]) -> Iterator[float]:
        seen.append(parameters)
        yield parameters["rate"]
        yield 1 / 3

    made = tabulate(
        {
            "rate": {"_type": "loguniform", "_value": [1e-4, 1.0]},
            "kind": {"_type": "choice", "_value": ["a", "b"]},
        },
        {"rate": [1.0, 1e-2]},
        train,
        clock_s=lambda: float(next(clock)),
        digits=3,
    )

    assert [(p["rate"], p["kind"]) for p in seen] == [
        (1e-2, "a"), (1e-2, "b"), (1.0, "a"), (1.0, "b"),
    ]  # fmt: skip
    assert made.curve({"rate": 1.0, "kind": "b"}) == Curve((1.0, 0.333), 3.0)


def test_tabulate_wants_values_of_all_that_is_no_choice() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}

    with pytest.raises(ValueError, match="grid must name values of x"):
        tabulate(space, {}, lambda _: [1.0])
    with pytest.raises(ValueError, match="grid must hold numbers"):
        tabulate(space, {"x": ["a"]}, lambda _: [1.0])
    with pytest.raises(ValueError, match="grid must hold numbers"):
        tabulate(space, {"x": [0.5, True]}, lambda _: [1.0])
    with pytest.raises(ValueError, match="at least one"):
        tabulate(space, {"x": [0.5]}, lambda _: [])


def test_tables_are_shown_and_compared_by_what_they_were_made_of() -> None:
    assert "_strides" not in repr(table())
    assert table() == table()
    assert table() != replace(table(), about="measured")


def test_best_value_is_that_of_a_curve_that_did_not_diverge() -> None:
    diverged = replace(table(), curves=(Curve((9.0, math.nan), 1.0), *table().curves[1:]))

    assert diverged.best_value == 5.5


def test_lower_of_two_points_that_are_equally_near_is_found() -> None:
    axis = GridAxis("x", "uniform", (0, 2), (0, 1, 2))

    assert [axis.index(value) for value in (0.5, 1.0, 1.5, 2)] == [0, 1, 1, 2]


def test_times_in_a_file_have_microseconds() -> None:
    made = replace(table(), curves=(Curve((0.0, 1.0), 0.123456789), *table().curves[1:]))

    assert CurveTable.from_json(made.to_json()).curves[0].step_s == 0.123457


def test_tabulated_values_have_five_decimals_and_its_names_are_kept() -> None:
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    clock = iter(range(2))

    made = tabulate(
        space,
        {"x": [0.5]},
        lambda _: [0.123456789, 2.0],
        optimize_mode="minimize",
        step="batch",
        about="made up",
        clock_s=lambda: float(next(clock)),
    )

    assert made.curves == (Curve((0.12346, 2.0), 0.5),)
    assert (made.optimize_mode, made.step, made.about) == ("minimize", "batch", "made up")
    clock = iter(range(2))
    plain = tabulate(space, {"x": [0.5]}, lambda _: [1.0], clock_s=lambda: float(next(clock)))
    assert (plain.optimize_mode, plain.step, plain.about) == ("maximize", "epoch", "")
