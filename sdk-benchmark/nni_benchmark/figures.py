"""Figures of matplotlib that all plots of the benchmark share: size, labels, legend and file."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure


def new_figure(title: str, x_label: str, y_label: str) -> tuple[Figure, Axes]:
    """Return an empty figure, drawn without a display, and its only pair of axes."""
    figure = Figure(figsize=(7, 4.5))
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.set_title(title)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    return figure, axes


def save_lines(figure: Figure, axes: Axes, path: Path) -> None:
    """Add a legend of the labelled lines and write the figure to an image file."""
    axes.legend(fontsize="x-small")
    figure.tight_layout()
    figure.savefig(path)
