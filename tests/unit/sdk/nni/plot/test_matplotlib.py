from __future__ import annotations

import io
import math
from itertools import product

import pytest
from matplotlib.text import Text

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


HOSTILE = ("$\\\\bad{x$", "a$b", "red\x1b[31m\x00", "x" * 100_000)
HUGE = (-1e308, 0.0, 1e308)


def hostile_charts() -> dict[str, Chart | ParallelChart]:
    """Return charts whose texts are no formulas, and whose numbers have no finite distance."""
    name, categories = HOSTILE[0], ChartAxis(HOSTILE[3], categories=HOSTILE)
    points = Series(name, HUGE, HUGE, shades=HUGE)
    bars = Bars(name, HOSTILE, [0.0] * 4, [1e308] * 4)
    surface = Surface(HUGE, HUGE, [HUGE] * 3, name)
    plain = ChartAxis(name)
    return {
        "points": Chart(name, [Panel(plain, plain, [points])], shade_title=HOSTILE[1]),
        "bars": Chart(HOSTILE[2], [Panel(plain, categories, [bars])]),
        "surface": Chart(name, [Panel(plain, plain, [surface])]),
        "parallel": ParallelChart(
            name, [plain, plain], list(product(HUGE, HUGE)), HUGE * 3, name, [[(0.0, name)], []]
        ),
    }


@pytest.mark.parametrize("kind", ["points", "bars", "surface", "parallel"])
def test_texts_of_the_user_are_no_formulas_and_huge_numbers_are_drawn(kind: str) -> None:
    chart = hostile_charts()[kind]

    figure = draw(chart)

    figure.savefig(io.BytesIO())
    texts: list[Text] = figure.findobj(Text)
    shown = {text.get_text() for text in texts}
    assert HOSTILE[0].replace("$", "\\$") in shown
    assert not any("\x1b" in text or len(text) > 100 for text in shown)


def test_bars_of_long_names_that_begin_alike_keep_their_rows() -> None:
    rows = ["x" * 200 + "1", "x" * 200 + "2"]
    panel = Panel(
        ChartAxis("x"), ChartAxis("y", categories=tuple(rows)), [Bars("b", rows, [0, 0], [1, 2])]
    )

    (axes,) = draw(Chart("title", [panel])).axes

    assert [bar.get_y() + bar.get_height() / 2 for bar in axes.patches] == [0.0, 1.0]  # type: ignore[attr-defined] # of rectangles
    assert [len(label.get_text()) for label in axes.get_yticklabels()] == [80, 80]
