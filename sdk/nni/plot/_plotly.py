"""Drawing of charts with plotly."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from nni.plot.charts import Bars, Chart, ChartAxis, Mark, Panel, ParallelChart, Series, Surface

_MANY: Final = 1000
"""From so many points on they are drawn by WebGL."""
_COLOURS: Final = "Viridis"
_FAINT: Final = 0.35


def draw(chart: Chart | ParallelChart) -> go.Figure:
    """Return a plotly figure of a chart: panels side by side; a legend only in a single panel."""
    if isinstance(chart, ParallelChart):
        return _parallel(chart)
    figure = make_subplots(
        rows=1, cols=len(chart.panels), shared_yaxes=True, horizontal_spacing=0.03
    )
    shaded = False
    for number, panel in enumerate(chart.panels, start=1):
        for mark in panel.marks:
            has_shades = isinstance(mark, Series) and bool(mark.shades)
            trace = _trace(mark, panel, chart.shade_title, show_scale=has_shades and not shaded)
            shaded = shaded or has_shades
            figure.add_trace(trace, row=1, col=number)
        figure.update_xaxes(_axis(panel.x), row=1, col=number)
        if number == 1:
            figure.update_yaxes(_axis(panel.y), row=1, col=number)
        elif panel.y.scale == "log":
            figure.update_yaxes(type="log", row=1, col=number)
    several = sum(len(panel.marks) for panel in chart.panels) > 1 and len(chart.panels) == 1
    figure.update_layout(title=chart.title, showlegend=several, template="plotly_white")
    return figure


def _axis(axis: ChartAxis) -> dict[str, Any]:
    fields: dict[str, Any] = {"title": {"text": axis.title}}
    if axis.categories:
        fields |= {"type": "category", "categoryarray": list(axis.categories)}
    elif axis.scale != "linear":
        fields["type"] = axis.scale
    return fields


def _trace(mark: Mark, panel: Panel, shade_title: str, *, show_scale: bool) -> Any:  # noqa: ANN401 - plotly has no types
    match mark:
        case Series():
            return _series(mark, panel, shade_title, show_scale=show_scale)
        case Bars():
            dated = panel.x.scale == "date"
            return go.Bar(
                name=mark.name,
                orientation="h",
                y=list(mark.rows),
                base=[_place(begin, panel.x) for begin in mark.begins],
                x=[
                    (end - begin) * (1000 if dated else 1)  # plotly counts dates in milliseconds
                    for begin, end in zip(mark.begins, mark.ends, strict=True)
                ],
                text=list(mark.texts) or None,
                textposition="none",
                hovertemplate="%{text}<extra></extra>" if mark.texts else None,
            )
        case Surface():
            return go.Contour(
                x=list(mark.x),
                y=list(mark.y),
                z=[list(row) for row in mark.z],
                colorscale=_COLOURS,
                colorbar={"title": {"text": mark.title}},
                opacity=0.8,
            )


def _series(mark: Series, panel: Panel, shade_title: str, *, show_scale: bool) -> Any:  # noqa: ANN401 - plotly has no types
    kind = go.Scattergl if len(mark.x) > _MANY else go.Scatter
    marker: dict[str, Any] = {"opacity": _FAINT if mark.faint else 0.8}
    if mark.shades:
        marker |= {"color": list(mark.shades), "colorscale": _COLOURS, "showscale": show_scale}
        if show_scale:
            marker["colorbar"] = {"title": {"text": shade_title}}
    line: dict[str, Any] = {"shape": "hv"} if mark.style == "steps" else {}
    return kind(
        name=mark.name,
        x=[_place(value, panel.x) for value in mark.x],
        y=list(mark.y),
        mode="markers" if mark.style == "points" else "lines",
        marker=marker,
        line=line,
        opacity=_FAINT if mark.faint and mark.style != "points" else 1.0,
        text=list(mark.texts) or None,
        hovertemplate="%{text}<br>%{x}, %{y}<extra></extra>" if mark.texts else None,
    )


def _place(value: float | str, axis: ChartAxis) -> float | str:
    if axis.scale == "date" and not isinstance(value, str):
        return datetime.fromtimestamp(value, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
    return value


def _parallel(chart: ParallelChart) -> go.Figure:
    dimensions = []
    for number, axis in enumerate(chart.axes):
        fields: dict[str, Any] = {
            "label": axis.title,
            "values": [line[number] for line in chart.lines],
        }
        if chart.ticks[number]:
            fields["tickvals"] = [place for place, _ in chart.ticks[number]]
            fields["ticktext"] = [text for _, text in chart.ticks[number]]
        dimensions.append(fields)
    scale = {"title": {"text": chart.shade_title}}
    line = {
        "color": list(chart.shades),
        "colorscale": _COLOURS,
        "showscale": True,
        "colorbar": scale,
    }
    figure = go.Figure(go.Parcoords(dimensions=dimensions, line=line))
    figure.update_layout(title=chart.title)
    return figure
