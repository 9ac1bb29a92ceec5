"""Charts as plain values, which plotly or matplotlib draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """Axis of a chart: title, scale, and the names of categories in order."""

    title: str
    scale: Literal["linear", "log", "date"] = "linear"
    """`date`: seconds since 1970."""
    categories: tuple[str, ...] = ()
    """Of a discrete axis; the values are their texts."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points of one name, drawn as marks, as a line, or as steps."""

    name: str
    x: Sequence[float | str]
    y: Sequence[float | str]
    style: Literal["points", "line", "steps"] = "points"
    texts: Sequence[str] = ()
    """Text of each point, shown with it."""
    shades: Sequence[float] = ()
    """Number of each point that decides its colour; empty: one colour."""
    faint: bool = False


@dataclass(frozen=True, slots=True)
class Bars:
    """Horizontal bars from a begin to an end, in rows that are categories of the vertical axis."""

    name: str
    rows: Sequence[str]
    begins: Sequence[float]
    ends: Sequence[float]
    texts: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Surface:
    """Values over a grid, interpolated between measured points."""

    x: Sequence[float]
    y: Sequence[float]
    z: Sequence[Sequence[float]]
    title: str


Mark: TypeAlias = Series | Bars | Surface


@dataclass(frozen=True, slots=True)
class Panel:
    """Coordinate system of a chart: a horizontal and a vertical axis, and the marks drawn in it."""

    x: ChartAxis
    y: ChartAxis
    marks: Sequence[Mark]


@dataclass(frozen=True, slots=True)
class Chart:
    """Panels side by side, which share the vertical axis."""

    title: str
    panels: Sequence[Panel]
    shade_title: str = ""
    """Meaning of the colours; empty: they tell names apart."""


@dataclass(frozen=True, slots=True)
class ParallelChart:
    """Vertical axes with a line through them for each trial."""

    title: str
    axes: Sequence[ChartAxis]
    lines: Sequence[Sequence[float]]
    """Position of each line on each axis; that of a category is its number."""
    shades: Sequence[float]
    """Number of each line that decides its colour."""
    shade_title: str
    ticks: Sequence[Sequence[tuple[float, str]]]
    """Positions and labels of each axis; empty ones are chosen by what draws it."""
