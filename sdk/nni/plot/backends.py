"""Choice of the library that draws a chart."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Literal, TypeAlias

from nni.plot.charts import Chart, ParallelChart

Backend: TypeAlias = Literal["plotly", "matplotlib"]
BACKENDS: Final[tuple[Backend, ...]] = ("plotly", "matplotlib")
"""In the order of preference."""


def draw(chart: Chart | ParallelChart, backend: Backend | None) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a chart as a figure of the backend; if None, of plotly, else of matplotlib.

    Args:
        chart: what is drawn.
        backend: the library; None: the first one that is installed.

    Raises:
        ValueError: there is no such backend.
        ImportError: the library is not installed.
    """
    if backend is not None and backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    chosen = backend or next((name for name in BACKENDS if find_spec(name)), None)
    if chosen is None or find_spec(chosen) is None:
        raise ImportError(
            f"nni.plot needs {chosen or 'plotly or matplotlib'}: pip install 'nni[plot]'"
        )
    return import_module(f"nni.plot._{chosen}").draw(chart)
