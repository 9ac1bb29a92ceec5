from __future__ import annotations

import math

from nni.plot._matplotlib import draw
from nni.plot.charts import Bars, Chart, ChartAxis, Panel, ParallelChart, Series, Surface


def test_panels_share_the_vertical_axis_and_a_scale_of_colours() -> None:
    panels = [
        Panel(
            ChartAxis(name),
            ChartAxis("y"),
            [Series(name, [1.0, 2.0], [2.0, 3.0], shades=[3.0, 4.0])],
        )
        for name in ("a", "b")
    ]

    first, second, scale = draw(Chart("title", panels, shade_title="trial")).axes

    assert first.get_shared_y_axes().joined(first, second)
    assert scale.get_ylabel() == "trial"


def test_several_marks_have_a_legend() -> None:
    marks = [Series("points", [1.0], [2.0]), Series("best", [1.0], [2.0], "steps")]

    (axes,) = draw(Chart("title", [Panel(ChartAxis("x"), ChartAxis("y"), marks)])).axes

    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["points", "best"]


def test_bars_begin_and_end_at_their_times() -> None:
    bars = Bars("run", ["a 1"], [0.0], [86_400.0])
    panel = Panel(ChartAxis("time", "date"), ChartAxis("machine", categories=("a 1",)), [bars])

    (axes,) = draw(Chart("title", [panel])).axes

    (bar,) = axes.patches
    assert bar.get_window_extent().width > 0
    assert axes.dataLim.width == 1.0  # a day


def test_surface_has_a_scale_with_its_title() -> None:
    surface = Surface([0.0, 1.0], [0.0, 1.0], [[0.0, 1.0], [1.0, math.nan]], "loss")

    axes = draw(Chart("title", [Panel(ChartAxis("x"), ChartAxis("y"), [surface])])).axes

    assert axes[1].get_ylabel() == "loss"


def test_parallel_lines_are_scaled_to_their_axes() -> None:
    chart = ParallelChart(
        "t", [ChartAxis("a"), ChartAxis("b")], [[0.0, 10.0], [4.0, 20.0]], [1.0, 2.0], "b", [[], []]
    )

    axes = draw(chart).axes[0]

    first, second = axes.collections[0].get_segments()  # type: ignore[attr-defined] # of line collections
    assert first.tolist() == [[0.0, 0.0], [1.0, 0.0]]
    assert second.tolist() == [[0.0, 1.0], [1.0, 1.0]]
