"""Drawing of charts with matplotlib, where plotly is missing or a file for a paper is wanted."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np
from matplotlib import cm, colors
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from nni.plot.charts import Bars, Chart, ChartAxis, Mark, Panel, ParallelChart, Series, Surface

_FAINT: Final = 0.35
_DAY_S: Final = 86_400
"""matplotlib counts dates in days since 1970."""
_PANEL_WIDTH: Final = 4.0
_HEIGHT: Final = 4.5
_LABEL_LIMIT: Final = 80
"""Most characters of a text; a longer one leaves the chart no room."""
_NUMBER_LIMIT: Final = 1e100
"""Larger numbers are drawn here: the length of an axis to them is no floating-point number."""
_DRAW_STYLES: Final = {"steps": "steps-post", "line": "default"}


def draw(chart: Chart | ParallelChart) -> Figure:
    """Return a chart as a figure of matplotlib, without a window of its own."""
    if isinstance(chart, ParallelChart):
        return _parallel(chart)
    count = len(chart.panels)
    width = max(7.0, _PANEL_WIDTH * count)
    figure = Figure(figsize=(width, _HEIGHT), layout="constrained")
    places = figure.subplots(1, count, sharey=True, squeeze=False)[0]
    shaded = None
    for place, panel in zip(places, chart.panels, strict=True):
        for mark in panel.marks:
            shaded = _add(place, mark, panel, figure) or shaded
        _set_axis(place, "x", panel.x)
    _set_axis(places[0], "y", chart.panels[0].y)
    if shaded is not None:
        figure.colorbar(shaded, ax=places, label=_text(chart.shade_title))
    if count == 1 and len(chart.panels[0].marks) > 1:
        places[0].legend()
    figure.suptitle(_text(chart.title))
    return figure


def _set_axis(place: Any, name: str, axis: ChartAxis) -> None:  # noqa: ANN401 - axes of matplotlib
    getattr(place, f"set_{name}label")(_text(axis.title))
    if axis.scale == "log":
        getattr(place, f"set_{name}scale")("log")
    elif axis.scale == "date":
        place.xaxis_date()
    if axis.categories:
        ticks = range(len(axis.categories))
        getattr(place, f"set_{name}ticks")(list(ticks), [_text(name) for name in axis.categories])


def _add(place: Any, mark: Mark, panel: Panel, figure: Figure) -> Any:  # noqa: ANN401 - axes of matplotlib
    """Draw a mark; return a scatter with shades, for the chart's colour bar, else None."""
    match mark:
        case Series():
            x, y = _places(mark.x, panel.x), _places(mark.y, panel.y)
            alpha = _FAINT if mark.faint else 0.8
            if mark.style != "points":
                style = _DRAW_STYLES[mark.style]
                place.plot(x, y, label=_text(mark.name), alpha=alpha, drawstyle=style)
                return None
            shades = _numbers(mark.shades) or None
            drawn = place.scatter(x, y, c=shades, label=_text(mark.name), alpha=alpha, s=16)
            return drawn if shades else None
        case Bars():
            begins = _places(mark.begins, panel.x)
            lengths = [
                end - begin for begin, end in zip(begins, _places(mark.ends, panel.x), strict=True)
            ]
            rows = _places(mark.rows, panel.y)
            place.barh(rows, lengths, left=begins, label=_text(mark.name))
        case Surface():
            grid = np.clip(np.array(mark.z, dtype=float), -_NUMBER_LIMIT, _NUMBER_LIMIT)
            drawn = place.contourf(
                _numbers(mark.x), _numbers(mark.y), np.ma.masked_invalid(grid), 16, alpha=0.8
            )
            figure.colorbar(drawn, ax=place, label=_text(mark.title))
    return None


def _places(values: Any, axis: ChartAxis) -> list[Any]:  # noqa: ANN401 - numbers or names
    if axis.categories:
        numbers = {name: number for number, name in enumerate(axis.categories)}
        return [numbers.get(str(value), math.nan) for value in values]
    if axis.scale == "date":
        return [one / _DAY_S for one in values]
    return _numbers(values)


def _numbers(values: Any) -> list[Any]:  # noqa: ANN401 - numbers, or lists of them
    """Return numbers, or lists of them, clipped to -1e100 and 1e100."""
    found: list[Any] = np.clip(
        np.array(values, dtype=float), -_NUMBER_LIMIT, _NUMBER_LIMIT
    ).tolist()
    return found


def _text(text: str) -> str:
    r"""Return a user's text as a label: `$` escaped, controls replaced, at most 80 characters.

    Examples:
        >>> _text("$x\\bad{$")
        '\\$x\\bad{\\$'
    """
    shown = "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)
    if len(shown) > _LABEL_LIMIT:
        shown = f"{shown[: _LABEL_LIMIT - 1]}…"
    return shown.replace("$", r"\$")


def _parallel(chart: ParallelChart) -> Figure:
    figure = Figure(figsize=(max(7.0, 1.6 * len(chart.axes)), _HEIGHT), layout="constrained")
    place = figure.subplots()
    lines = np.array(_numbers(chart.lines)).reshape(-1, len(chart.axes))
    shades = _numbers(chart.shades)
    low, high = np.nanmin(lines, axis=0), np.nanmax(lines, axis=0)
    span = np.where(high > low, high - low, 1.0)
    scaled = (lines - low) / span
    norm = colors.Normalize(min(shades), max(shades))
    across = np.arange(len(chart.axes))
    segments = np.stack([np.broadcast_to(across, scaled.shape), scaled], axis=-1)
    drawn = LineCollection(list(segments), cmap="viridis", norm=norm, alpha=0.5)
    drawn.set_array(np.array(shades))
    place.add_collection(drawn)
    place.set_xlim(0, max(1, len(chart.axes) - 1))
    place.set_ylim(-0.05, 1.05)
    place.set_xticks(across, [_text(axis.title) for axis in chart.axes])
    place.set_yticks([])
    for number, ticks in enumerate(chart.ticks):
        shown = ticks or [(float(low[number]), ""), (float(high[number]), "")]
        for position, label in shown:
            height = (position - low[number]) / span[number]
            place.annotate(_text(label) or f"{position:g}", (number, height), fontsize=8)
        place.axvline(number, color="0.7", linewidth=0.8)
    figure.colorbar(cm.ScalarMappable(norm, "viridis"), ax=place, label=_text(chart.shade_title))
    figure.suptitle(_text(chart.title))
    return figure
