"""Charts of a search over time: results, curves, distribution of results, hypervolume."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, Final, Literal, TypeAlias

from nni.plot.backends import Backend, draw
from nni.plot.charts import Bars, Chart, ChartAxis, Panel, Series
from nni.plot.trials import DEFAULT_METRIC, PlottedTrial, finished, trials_of

Mode: TypeAlias = Literal["minimize", "maximize"]
_POSITIVE_DECADES: Final = 3
"""All results positive and over so many powers of ten: the axis is logarithmic."""


def history(
    source: Any,  # noqa: ANN401 - see trials_of
    *,
    metric: str = DEFAULT_METRIC,
    optimize_mode: Mode = "minimize",
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a plotly or matplotlib figure of each trial's result and the best one so far.

    Args:
        source: see `trials_of`.
        metric: which one.
        optimize_mode: what is best: `minimize` or `maximize`.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: no trial has reported the metric.

    Examples:
        >>> from nni.plot import PlottedTrial, history
        >>> trials = [PlottedTrial(n, {"x": n}, {"default": 1 / (n + 1)}) for n in range(3)]
        >>> figure = history(trials, backend="matplotlib")
    """
    sign = sign_of(optimize_mode)
    trials = finished(trials_of(source), metric)
    values = [trial.values[metric] for trial in trials]
    best = _best_so_far(values, sign)
    numbers = [trial.number for trial in trials]
    marks = [
        Series("trial", numbers, values, texts=[describe(trial) for trial in trials]),
        Series("best so far", numbers, best, style="steps"),
    ]
    panel = Panel(ChartAxis("trial"), ChartAxis(metric, scale_of(values)), marks)
    return draw(Chart(f"Results of {len(trials)} trials", [panel]), backend)


def intermediate_results(
    source: Any,  # noqa: ANN401 - see trials_of
    *,
    metric: str = DEFAULT_METRIC,
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a plotly or matplotlib figure of intermediate results over steps, coloured by state.

    Early-stopped and failed trials are among them; each state has its colour.

    Args:
        source: see `trials_of`.
        metric: which one.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: no trial has intermediate results of the metric.

    Examples:
        >>> from nni.plot import PlottedTrial, intermediate_results
        >>> trials = [PlottedTrial(0, {"x": 1}, {}, (0.3, 0.2, 0.1))]
        >>> figure = intermediate_results(trials, backend="matplotlib")
    """
    by_status: dict[str, tuple[list[float], list[float]]] = {}
    count = 0
    for trial in trials_of(source):
        curve = trial.curve(metric)
        if not curve:
            continue
        count += 1
        steps, values = by_status.setdefault(trial.status, ([], []))
        steps += [*map(float, range(len(curve))), math.nan]
        values += [*curve, math.nan]  # the gap between two curves
    if not count:
        raise ValueError(f"metric must have intermediate results, got {metric!r}")
    marks = [
        Series(status.lower().replace("_", " "), steps, values, style="line", faint=True)
        for status, (steps, values) in sorted(by_status.items())
    ]
    panel = Panel(ChartAxis("step"), ChartAxis(metric), marks)
    return draw(Chart(f"Intermediate results of {count} trials", [panel]), backend)


def edf(
    sources: Any,  # noqa: ANN401 - a source, or several by name
    *,
    metric: str = DEFAULT_METRIC,
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a plotly or matplotlib figure of the cumulative share of trials by result, per search.

    Args:
        sources: a source, see `trials_of`, or a mapping of a name to each.
        metric: which one.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: no trial of a source has reported the metric.

    Examples:
        >>> from nni.plot import PlottedTrial, edf
        >>> trials = [PlottedTrial(n, {"x": n}, {"default": float(n)}) for n in range(3)]
        >>> figure = edf({"first": trials, "second": trials[:2]}, backend="matplotlib")
    """
    named = sources if isinstance(sources, Mapping) else {"trials": sources}
    marks, everything = [], []
    for name, source in named.items():
        values = sorted(trial.values[metric] for trial in finished(trials_of(source), metric))
        everything += values
        shares = [(rank + 1) / len(values) for rank in range(len(values))]
        marks.append(Series(str(name), values, shares, style="steps"))
    panel = Panel(ChartAxis(metric, scale_of(everything)), ChartAxis("share of trials"), marks)
    return draw(Chart("Distribution of results", [panel]), backend)


def tuners(
    source: Any,  # noqa: ANN401 - see trials_of
    *,
    metric: str = DEFAULT_METRIC,
    optimize_mode: Mode = "minimize",
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a plotly or matplotlib figure of the best result of each tuner over its own trials.

    Args:
        source: see `trials_of`; an experiment knows which of its tuners proposed a trial.
        metric: which one.
        optimize_mode: what is best: `minimize` or `maximize`.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: no trial has reported the metric, or none names its tuner.

    Examples:
        >>> from nni.plot import PlottedTrial, tuners
        >>> trials = [
        ...     PlottedTrial(n, {"x": n}, {"default": 1 / (n + 1)}, tuner=("TPE", "Random")[n % 2])
        ...     for n in range(6)
        ... ]
        >>> figure = tuners(trials, backend="matplotlib")
    """
    sign = sign_of(optimize_mode)
    trials = [trial for trial in finished(trials_of(source), metric) if trial.tuner]
    if not trials:
        raise ValueError("source must have trials that name their tuner, as an experiment has")
    marks = []
    for tuner in dict.fromkeys(trial.tuner for trial in trials):
        values = [trial.values[metric] for trial in trials if trial.tuner == tuner]
        best = _best_so_far(values, sign)
        marks.append(Series(tuner, list(range(1, len(best) + 1)), best, style="steps"))
    scale = scale_of([trial.values[metric] for trial in trials])
    panel = Panel(ChartAxis("trials of the tuner"), ChartAxis(metric, scale), marks)
    return draw(Chart("Best result of each tuner", [panel]), backend)


def timeline(source: Any, *, backend: Backend | None = None) -> Any:  # noqa: ANN401 - see trials_of; a figure
    """Return a plotly or matplotlib figure of when each trial ran, a row per machine and place.

    Args:
        source: see `trials_of`; an experiment knows the times.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: no trial has a start and an end.

    Examples:
        >>> from nni.plot import PlottedTrial, timeline
        >>> trials = [PlottedTrial(0, {}, started_s=0.0, ended_s=5.0, machine="gpu-1")]
        >>> figure = timeline(trials, backend="matplotlib")
    """
    rows = list(_rows(trials_of(source)))
    if not rows:
        raise ValueError("source must have trials with a start and an end, as an experiment has")
    by_status: dict[str, list[tuple[str, PlottedTrial]]] = {}
    for row, trial in rows:
        by_status.setdefault(trial.status, []).append((row, trial))
    marks = [
        Bars(
            status.lower().replace("_", " "),
            [row for row, _ in found],
            [trial.started_s or 0.0 for _, trial in found],
            [trial.ended_s or 0.0 for _, trial in found],
            [describe(trial) for _, trial in found],
        )
        for status, found in sorted(by_status.items())
    ]
    names = tuple(dict.fromkeys(row for row, _ in sorted(rows, key=_row_order)))
    panel = Panel(ChartAxis("time (UTC)", "date"), ChartAxis("machine", categories=names), marks)
    return draw(Chart("Trials over time", [panel]), backend)


def _row_order(item: tuple[str, PlottedTrial]) -> list[tuple[bool, int, str]]:
    """Return a key that orders the names of rows by their numbers: 2 before 10."""
    parts = re.split(r"(\d+)", item[0])
    return [(part.isdecimal(), int(part) if part.isdecimal() else 0, part) for part in parts]


def _rows(trials: Sequence[PlottedTrial]) -> Iterator[tuple[str, PlottedTrial]]:
    """Yield each timed trial with its row, the first free one of its machine; skip others."""
    free: dict[str, list[float]] = {}
    timed = [one for one in trials if one.started_s is not None and one.ended_s is not None]
    for trial in sorted(timed, key=lambda one: one.started_s or 0.0):
        machine = trial.machine or "trials"
        ends = free.setdefault(machine, [])
        begin, end = trial.started_s or 0.0, trial.ended_s or 0.0
        place = next((number for number, until in enumerate(ends) if until <= begin), len(ends))
        ends[place : place + 1] = [end]
        yield f"{machine} {place + 1}", trial


def sign_of(optimize_mode: str) -> int:
    """Return 1 for `minimize`, -1 for `maximize`; raise ValueError for others.

    Raises:
        ValueError: it is neither.
    """
    if optimize_mode not in {"minimize", "maximize"}:
        raise ValueError(f"optimize_mode must be minimize or maximize, got {optimize_mode!r}")
    return 1 if optimize_mode == "minimize" else -1


def scale_of(values: Sequence[float]) -> Literal["linear", "log"]:
    """Return an axis's scale: `log` for positive values over 3 powers of ten, else `linear`."""
    if not values or min(values) <= 0:
        return "linear"
    return "log" if math.log10(max(values) / min(values)) >= _POSITIVE_DECADES else "linear"


def describe(trial: PlottedTrial) -> str:
    """Return a trial in one line: number, id, parameters."""
    given = ", ".join(f"{name}={_short(value)}" for name, value in trial.parameters.items())
    return f"trial {trial.number} {trial.id}: {given}".replace(" :", ":")


def _short(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _best_so_far(values: Sequence[float], sign: int) -> list[float]:
    """Return the best value until each; with sign 1 the least is best, with -1 the largest."""
    best = accumulate((sign * value for value in values), min, initial=math.inf)
    return [sign * loss for loss in best][1:]
