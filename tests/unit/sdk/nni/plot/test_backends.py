from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from nni.plot.backends import draw
from nni.plot.charts import Chart, ChartAxis, Panel, Series

CHART = Chart("title", [Panel(ChartAxis("x"), ChartAxis("y"), [Series("points", [1.0], [2.0])])])


def test_chosen_library_draws() -> None:
    assert isinstance(draw(CHART, "matplotlib"), Figure)


def test_plotly_comes_first() -> None:
    graph_objects = pytest.importorskip("plotly.graph_objects")

    assert isinstance(draw(CHART, None), graph_objects.Figure)


def test_unknown_library_is_refused() -> None:
    with pytest.raises(ValueError, match="backend must be one of plotly, matplotlib"):
        draw(CHART, "bokeh")  # type: ignore[arg-type] # wrong on purpose
