"""Charts of results over hyperparameters: parallel coordinates, slices, contours, importance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from nni.plot.backends import Backend, draw
from nni.plot.charts import Bars, Chart, ChartAxis, Panel, ParallelChart, Series, Surface
from nni.plot.progress import Mode, describe, scale_of, sign_of
from nni.plot.trials import DEFAULT_METRIC, PlottedTrial, finished, trials_of

_GRID: Final = 40
"""Points of a contour in each direction."""
_NEIGHBOURS: Final = 8
_MOST_TRIALS: Final = 1000
"""Trials from which the importance is estimated; of more some are taken at even distances."""
_NO_VALUE: Final = "(none)"


def parallel_coordinates(
    source: Any,  # noqa: ANN401 - see trials_of
    *,
    parameters: Sequence[str] = (),
    metric: str = DEFAULT_METRIC,
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Draw a line per trial through axes of hyperparameters and result, by plotly or matplotlib.

    Args:
        source: see `trials_of`.
        parameters: paths of hyperparameters in order; empty: all.
        metric: last axis, and the colour.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: no trial has reported the metric, or has a parameter.

    Examples:
        >>> from nni.plot import PlottedTrial, parallel_coordinates
        >>> space = [(0.1, "sgd"), (0.2, "adam")]
        >>> trials = [
        ...     PlottedTrial(n, {"rate": rate, "optimizer": name}, {"default": rate})
        ...     for n, (rate, name) in enumerate(space)
        ... ]
        >>> figure = parallel_coordinates(trials, backend="matplotlib")
    """
    trials = finished(trials_of(source), metric)
    names = _names(trials, parameters)
    columns = [_column(trials, name) for name in names]
    results = [trial.values[metric] for trial in trials]
    axes = [*(ChartAxis(name) for name in names), ChartAxis(metric)]
    ticks = [*(found for _, found in columns), []]
    lines = [list(line) for line in zip(*(places for places, _ in columns), results, strict=True)]
    title = f"{len(trials)} trials"
    return draw(ParallelChart(title, axes, lines, results, metric, ticks), backend)


def slices(
    source: Any,  # noqa: ANN401 - see trials_of
    *,
    parameters: Sequence[str] = (),
    metric: str = DEFAULT_METRIC,
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a plotly or matplotlib figure of results over each hyperparameter, coloured by number.

    Args:
        source: see `trials_of`.
        parameters: paths of hyperparameters; empty: all.
        metric: which result.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: no trial has reported the metric, or has a parameter.

    Examples:
        >>> from nni.plot import PlottedTrial, slices
        >>> trials = [PlottedTrial(n, {"x": n}, {"default": float(n)}) for n in range(3)]
        >>> figure = slices(trials, backend="matplotlib")
    """
    trials = finished(trials_of(source), metric)
    results = ChartAxis(metric, scale_of([trial.values[metric] for trial in trials]))
    panels = []
    for name in _names(trials, parameters):
        active = [trial for trial in trials if name in trial.parameters]
        mark = Series(
            name,
            [_on(active_value(trial, name)) for trial in active],
            [trial.values[metric] for trial in active],
            texts=[describe(trial) for trial in active],
            shades=[trial.number for trial in active],
        )
        panels.append(Panel(_axis(active, name), results, [mark]))
    return draw(Chart("Results by hyperparameter", panels, shade_title="trial"), backend)


def contour(
    source: Any,  # noqa: ANN401 - see trials_of
    first: str,
    second: str,
    *,
    metric: str = DEFAULT_METRIC,
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a plotly or matplotlib figure of results over two hyperparameters, interpolated.

    Each point of the surface is the mean of the nearest trials, weighted by the inverse square of
    the distance, in the scales of the axes.

    Args:
        source: see `trials_of`.
        first: path of the hyperparameter on the horizontal axis.
        second: path of the hyperparameter on the vertical axis.
        metric: which result.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: fewer than three trials have the metric and both parameters as numbers.

    Examples:
        >>> from nni.plot import PlottedTrial, contour
        >>> points = [(0, 0), (0, 1), (1, 0), (1, 1)]
        >>> trials = [
        ...     PlottedTrial(n, {"x": x, "y": y}, {"default": float(x + y)})
        ...     for n, (x, y) in enumerate(points)
        ... ]
        >>> figure = contour(trials, "x", "y", backend="matplotlib")
    """
    trials = [
        trial
        for trial in finished(trials_of(source), metric)
        if _is_number(trial.parameters.get(first)) and _is_number(trial.parameters.get(second))
    ]
    least = 3
    if len(trials) < least:
        raise ValueError(
            f"first and second must be numbers in at least {least} trials with a result, "
            f"got {first!r} and {second!r}"
        )
    x, y = _axis(trials, first), _axis(trials, second)
    points = [(float(one.parameters[first]), float(one.parameters[second])) for one in trials]
    values = [trial.values[metric] for trial in trials]
    surface = _surface(points, values, x, y, metric)
    mark = Series(
        "trial",
        [point[0] for point in points],
        [point[1] for point in points],
        texts=[describe(trial) for trial in trials],
    )
    return draw(Chart(f"{metric} by {first} and {second}", [Panel(x, y, [surface, mark])]), backend)


def rank(
    source: Any,  # noqa: ANN401 - see trials_of
    first: str,
    second: str,
    *,
    metric: str = DEFAULT_METRIC,
    optimize_mode: Mode = "minimize",
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a plotly or matplotlib figure of trials over two hyperparameters, coloured by rank.

    Ranks show good regions also where a few results are far from all others.

    Args:
        source: see `trials_of`.
        first: path of the hyperparameter on the horizontal axis.
        second: path of the hyperparameter on the vertical axis.
        metric: which result.
        optimize_mode: what is best: `minimize` or `maximize`; the best trial has the rank 1.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: no trial has the metric and both parameters.

    Examples:
        >>> from nni.plot import PlottedTrial, rank
        >>> trials = [PlottedTrial(n, {"x": n, "y": -n}, {"default": n**9}) for n in range(3)]
        >>> figure = rank(trials, "x", "y", backend="matplotlib")
    """
    sign = sign_of(optimize_mode)
    found = finished(trials_of(source), metric)
    trials = [one for one in found if first in one.parameters and second in one.parameters]
    if not trials:
        raise ValueError(
            f"first and second must be parameters of a trial with a result, got {first!r} and "
            f"{second!r}"
        )
    ordered = sorted({sign * trial.values[metric] for trial in trials})
    ranks = {value: place + 1 for place, value in enumerate(ordered)}
    mark = Series(
        "trial",
        [_on(active_value(trial, first)) for trial in trials],
        [_on(active_value(trial, second)) for trial in trials],
        texts=[f"{describe(trial)}: {trial.values[metric]:.4g}" for trial in trials],
        shades=[ranks[sign * trial.values[metric]] for trial in trials],
    )
    panel = Panel(_axis(trials, first), _axis(trials, second), [mark])
    title = f"Ranks by {first} and {second}"
    return draw(Chart(title, [panel], shade_title=f"rank of {metric}"), backend)


def parameter_importances(
    source: Any,  # noqa: ANN401 - see trials_of
    search_space: Any = None,  # noqa: ANN401 - see nni.hpo.Study
    *,
    metric: str = DEFAULT_METRIC,
    optimize_mode: Mode = "minimize",
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a plotly or matplotlib figure of each hyperparameter's share of the variance.

    Args:
        source: see `trials_of`.
        search_space: space of the trials; None: it is made from their parameters.
        metric: which result.
        optimize_mode: direction of good results, whose differences count fully.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: there are too few trials with different results, see `nni.hpo.importances`.

    Examples:
        >>> from nni.plot import PlottedTrial, parameter_importances
        >>> trials = [
        ...     PlottedTrial(n, {"x": n / 9, "y": n % 3}, {"default": n / 9}) for n in range(10)
        ... ]
        >>> figure = parameter_importances(trials, backend="matplotlib")
    """
    from nni.hpo.importance import importances
    from nni.hpo.space.typed_space import as_json

    sign_of(optimize_mode)
    trials = finished(trials_of(source), metric)
    trials = trials[:: math.ceil(len(trials) / _MOST_TRIALS)]
    space = as_json(search_space) if search_space is not None else observed_space(trials)
    pairs = [
        (nested(trial.parameters, space) if search_space is not None else dict(trial.parameters))
        for trial in trials
    ]
    found = importances(
        space,
        [(given, trial.values[metric]) for given, trial in zip(pairs, trials, strict=True)],
        optimize_mode=optimize_mode,
    )
    shares = {**found.shares, "interactions": found.interactions}
    rows = sorted(shares, key=lambda name: shares[name])
    bars = Bars(
        "share",
        rows,
        [0.0] * len(rows),
        [shares[name] for name in rows],
        [f"{name}: {shares[name]:.1%}" for name in rows],
    )
    panel = Panel(ChartAxis("share of the variance"), ChartAxis("", categories=tuple(rows)), [bars])
    return draw(Chart(f"Importance, from {found.trials} trials", [panel]), backend)


def active_value(trial: PlottedTrial, name: str) -> object:
    """Return the value of a hyperparameter of a trial; None: it is not active."""
    return trial.parameters.get(name)


def _names(trials: Sequence[PlottedTrial], wanted: Sequence[str]) -> list[str]:
    known = list(dict.fromkeys(name for trial in trials for name in trial.parameters))
    unknown = [name for name in wanted if name not in known]
    if unknown or not known:
        raise ValueError(
            f"parameters must be of {', '.join(known) or 'trials with parameters'}, "
            f"got {', '.join(unknown) or 'none'}"
        )
    return list(wanted) or known


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _on(value: Any) -> float | str:  # noqa: ANN401 - any scalar
    """Return a number as a float, None as `(none)`, any other value as its text."""
    return float(value) if _is_number(value) else _text(value)


def _text(value: object) -> str:
    return _NO_VALUE if value is None else str(value)


def _axis(trials: Sequence[PlottedTrial], name: str) -> ChartAxis:
    values = [active_value(trial, name) for trial in trials]
    if all(_is_number(value) for value in values):
        return ChartAxis(name, scale_of([float(str(value)) for value in values]))
    return ChartAxis(name, categories=tuple(sorted({_text(value) for value in values})))


def _column(
    trials: Sequence[PlottedTrial], name: str
) -> tuple[list[float], list[tuple[float, str]]]:
    """Return the place of each trial on the axis of a hyperparameter, and its labels.

    A trial in which it is not active, and a null, have a place below the others.
    """
    values = [active_value(trial, name) for trial in trials]
    given = [value for value in values if value is not None]
    if given and all(_is_number(value) for value in given):
        return _numeric_column([None if one is None else float(str(one)) for one in values])
    names = sorted({_text(value) for value in values})
    places = {text: float(number) for number, text in enumerate(names)}
    return [places[_text(value)] for value in values], [(at, text) for text, at in places.items()]


def _numeric_column(
    values: Sequence[float | None],
) -> tuple[list[float], list[tuple[float, str]]]:
    given = [value for value in values if value is not None]
    logarithmic = scale_of(given) == "log"
    placed = [math.log10(value) if logarithmic else value for value in given]
    low, high = min(placed), max(placed)
    below = low - (0.1 * (high - low) or 1.0)
    places = [
        below if value is None else (math.log10(value) if logarithmic else value)
        for value in values
    ]
    ticks: list[tuple[float, str]] = []
    if logarithmic:
        decades = range(math.ceil(low), math.floor(high) + 1)
        ticks = [(float(decade), f"1e{decade}") for decade in decades]
    elif len(given) < len(values):
        ticks = [
            (low + (high - low) * part / 4, f"{low + (high - low) * part / 4:.3g}")
            for part in range(5)
        ]
    if len(given) < len(values):
        ticks.append((below, _NO_VALUE))
    return places, ticks


def _surface(
    points: Sequence[tuple[float, float]],
    values: Sequence[float],
    x: ChartAxis,
    y: ChartAxis,
    title: str,
) -> Surface:
    import numpy as np

    def scaled(numbers: Any, axis: ChartAxis) -> Any:  # noqa: ANN401 - arrays
        array = np.asarray(numbers, dtype=float)
        return np.log10(array) if axis.scale == "log" else array

    def grid(numbers: Any) -> Any:  # noqa: ANN401 - arrays
        return np.linspace(numbers.min(), numbers.max(), _GRID)

    across, up = scaled([p[0] for p in points], x), scaled([p[1] for p in points], y)
    columns, rows = grid(across), grid(up)
    width, height = np.ptp(across) or 1.0, np.ptp(up) or 1.0
    near = min(_NEIGHBOURS, len(points))
    measured = np.asarray(values, dtype=float)
    z = []
    for row in rows:
        distances = ((columns[:, None] - across) / width) ** 2 + ((row - up) / height) ** 2
        nearest = np.argpartition(distances, near - 1, axis=1)[:, :near]
        weights = 1 / (np.take_along_axis(distances, nearest, axis=1) + 1e-6)
        z.append(((weights * measured[nearest]).sum(axis=1) / weights.sum(axis=1)).tolist())

    def places(numbers: Any, axis: ChartAxis) -> list[float]:  # noqa: ANN401 - arrays
        found: list[float] = (10**numbers if axis.scale == "log" else numbers).tolist()
        return found

    return Surface(places(columns, x), places(rows, y), z, title)


def observed_space(trials: Sequence[PlottedTrial]) -> dict[str, Any]:
    """Return a space over the values that trials had; parameters of branches are left out."""
    space: dict[str, Any] = {}
    for name in _names(trials, ()):
        values = [trial.parameters.get(name) for trial in trials]
        if any(name not in trial.parameters for trial in trials):
            continue
        numbers = [float(str(value)) for value in values if _is_number(value)]
        if len(numbers) == len(values) and min(numbers) < max(numbers):
            kind = "loguniform" if scale_of(numbers) == "log" else "uniform"
            space[name] = {"_type": kind, "_value": [min(numbers), max(numbers)]}
        else:
            space[name] = {"_type": "choice", "_value": list(dict.fromkeys(values))}
    return space


def nested(
    parameters: Mapping[str, Any], space: Mapping[str, Any], above: str = ""
) -> dict[str, Any]:
    """Return flat parameters nested as in a space: those of a branch in a dict with `_name`.

    Args:
        parameters: by path.
        space: in JSON, or the parameters of a branch of it.
        above: path of that branch, with a `/`.
    """
    found: dict[str, Any] = {}
    for name, entry in space.items():
        if f"{above}{name}" not in parameters:
            continue
        value = found[name] = parameters[f"{above}{name}"]
        for option in entry["_value"] if entry["_type"] == "choice" else ():
            if isinstance(option, Mapping) and option.get("_name") == value:
                inner = {key: one for key, one in option.items() if key != "_name"}
                found[name] = {"_name": value, **nested(parameters, inner, f"{above}{name}/")}
    return found
