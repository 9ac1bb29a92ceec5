from __future__ import annotations

from typing import Any

import pytest

from nni.plot.charts import Bars, Chart, ChartAxis, Panel, ParallelChart, Series, Surface

pytest.importorskip("plotly")


def drawn(chart: Chart | ParallelChart) -> dict[str, Any]:
    from nni.plot._plotly import draw

    figure: dict[str, Any] = draw(chart).to_dict()
    return figure


X, Y = ChartAxis("x"), ChartAxis("y")


def one(mark: Any, x: ChartAxis = X, y: ChartAxis = Y) -> dict[str, Any]:
    found: dict[str, Any] = drawn(Chart("title", [Panel(x, y, [mark])]))["data"][0]
    return found


def test_points_have_their_texts() -> None:
    trace = one(Series("points", [1.0], [2.0], texts=["trial 0"]))

    assert (trace["type"], trace["mode"], list(trace["text"])) == (
        "scatter",
        "markers",
        ["trial 0"],
    )


def test_many_points_are_drawn_by_webgl() -> None:
    values = [float(number) for number in range(2000)]

    assert one(Series("points", values, values))["type"] == "scattergl"


def test_steps_are_horizontal_first() -> None:
    assert one(Series("best", [0.0, 1.0], [2.0, 1.0], "steps"))["line"]["shape"] == "hv"


def test_bars_of_times_are_dates() -> None:
    trace = one(Bars("run", ["a 1"], [0.0], [1.5], ["trial 0"]), x=ChartAxis("time", "date"))

    assert list(trace["base"]) == ["1970-01-01 00:00:00.000000"]
    assert list(trace["x"]) == [1500.0]


def test_one_scale_of_colours_serves_all_panels() -> None:
    panels = [
        Panel(ChartAxis(name), ChartAxis("y"), [Series(name, [1.0], [2.0], shades=[3.0])])
        for name in ("a", "b")
    ]

    traces = drawn(Chart("title", panels, shade_title="trial"))["data"]

    assert [trace["marker"]["showscale"] for trace in traces] == [True, False]


def test_categories_keep_their_order() -> None:
    figure = drawn(
        Chart(
            "t",
            [
                Panel(
                    ChartAxis("x", categories=("b", "a")),
                    ChartAxis("y"),
                    [Series("s", ["a"], [1.0])],
                )
            ],
        )
    )

    assert list(figure["layout"]["xaxis"]["categoryarray"]) == ["b", "a"]


def test_surface_has_its_title() -> None:
    trace = one(Surface([0.0, 1.0], [0.0, 1.0], [[0.0, 1.0], [1.0, 2.0]], "loss"))

    assert (trace["type"], trace["colorbar"]["title"]["text"]) == ("contour", "loss")


def test_lines_go_through_all_axes() -> None:
    chart = ParallelChart(
        "t", [ChartAxis("a"), ChartAxis("b")], [[0.0, 1.0]], [1.0], "b", [[(0.0, "zero")], []]
    )

    first, second = drawn(chart)["data"][0]["dimensions"]

    assert (first["ticktext"], list(second["values"])) == (["zero"], [1.0])
