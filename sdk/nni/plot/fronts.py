"""Charts of searches with several objectives: Pareto front and hypervolume."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from nni.plot.backends import Backend, draw
from nni.plot.charts import Chart, ChartAxis, Panel, Series
from nni.plot.progress import describe, sign_of
from nni.plot.trials import PlottedTrial, trials_of

_PAIR: Final = 2


def pareto_front(
    source: Any,  # noqa: ANN401 - see trials_of
    objectives: Mapping[str, str],
    *,
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a plotly or matplotlib figure of trials over two objectives, the Pareto front apart.

    Args:
        source: see `trials_of`.
        objectives: two metrics, each with `minimize` or `maximize`.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: there are not two objectives, or no trial has reported both.

    Examples:
        >>> from nni.plot import PlottedTrial, pareto_front
        >>> trials = [PlottedTrial(n, {"x": n}, {"loss": n, "size": 3 - n}) for n in range(3)]
        >>> objectives = {"loss": "minimize", "size": "minimize"}
        >>> figure = pareto_front(trials, objectives, backend="matplotlib")
    """
    from nni.hpo.pareto import pareto_front as front_of

    trials, losses = _losses(source, objectives)
    first, second = objectives
    front = front_of(losses)
    best = sorted((trials[place] for place in front), key=lambda trial: trial.values[first])
    dominated = sorted(set(range(len(trials))) - set(front))
    others = [trials[place] for place in dominated]
    marks = [
        _points("dominated", others, first, second, faint=True),
        _points("front", best, first, second),
    ]
    panel = Panel(
        ChartAxis(f"{first} ({objectives[first]})"),
        ChartAxis(f"{second} ({objectives[second]})"),
        marks,
    )
    return draw(Chart(f"Pareto front: {len(front)} of {len(trials)} trials", [panel]), backend)


def _points(
    name: str, trials: Sequence[PlottedTrial], first: str, second: str, *, faint: bool = False
) -> Series:
    return Series(
        name,
        [trial.values[first] for trial in trials],
        [trial.values[second] for trial in trials],
        texts=[describe(trial) for trial in trials],
        faint=faint,
    )


def hypervolume(
    source: Any,  # noqa: ANN401 - see trials_of
    objectives: Mapping[str, str],
    *,
    reference: Mapping[str, float] | None = None,
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a plotly or matplotlib figure of the area that the front dominates after each trial.

    Args:
        source: see `trials_of`.
        objectives: two metrics, each with `minimize` or `maximize`.
        reference: corner of the area; None: the worst value of each objective.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: there are not two objectives, or no trial has reported both.

    Examples:
        >>> from nni.plot import PlottedTrial, hypervolume
        >>> trials = [PlottedTrial(n, {"x": n}, {"loss": n, "size": 3 - n}) for n in range(3)]
        >>> objectives = {"loss": "minimize", "size": "minimize"}
        >>> figure = hypervolume(trials, objectives, backend="matplotlib")
    """
    trials, losses = _losses(source, objectives)
    if reference is None:
        corner = (max(pair[0] for pair in losses), max(pair[1] for pair in losses))
    else:
        missing = [name for name in objectives if name not in reference]
        if missing:
            raise ValueError(f"reference must have a value of {', '.join(missing)}")
        first, second = (sign_of(objectives[name]) * reference[name] for name in objectives)
        corner = (first, second)
    mark = Series("hypervolume", [one.number for one in trials], areas(losses, corner), "steps")
    panel = Panel(ChartAxis("trial"), ChartAxis("hypervolume"), [mark])
    return draw(Chart(f"Hypervolume of {' and '.join(objectives)}", [panel]), backend)


def areas(losses: Sequence[Sequence[float]], corner: tuple[float, float]) -> list[float]:
    """Return the area between the front of the first losses and a corner, after each one.

    Args:
        losses: pairs; smaller is better.
        corner: losses beyond it count nothing.

    Examples:
        >>> from nni.plot.fronts import areas
        >>> areas([(1, 1), (0, 1), (1, 0)], (2, 2))
        [1.0, 2.0, 3.0]
    """
    front: list[tuple[float, float]] = []  # ascending in the first loss, descending in the second
    total, found = 0.0, []
    for first, second in losses:
        if first < corner[0] and second < corner[1]:
            total += _gain(front, first, second, corner)
        found.append(total)
    return found


def _gain(
    front: list[tuple[float, float]], first: float, second: float, corner: tuple[float, float]
) -> float:
    """Add a point to a sorted front, in place; return the added area, 0 if it is dominated."""
    place = 0
    while place < len(front) and front[place][0] <= first:
        place += 1
    ceiling = front[place - 1][1] if place else corner[1]
    if second >= ceiling:
        return 0.0  # dominated
    if place and front[place - 1][0] == first:
        place -= 1
        ceiling = front[place - 1][1] if place else corner[1]
    gain, left, end = 0.0, first, place
    height = ceiling
    while end < len(front) and front[end][1] >= second:
        gain += (front[end][0] - left) * (height - second)
        left, height = front[end]
        end += 1
    right = front[end][0] if end < len(front) else corner[0]
    gain += (right - left) * (height - second)
    front[place:end] = [(first, second)]
    return float(gain)


def _losses(
    source: Any,  # noqa: ANN401 - see trials_of
    objectives: Mapping[str, str],
) -> tuple[list[PlottedTrial], list[tuple[float, float]]]:
    if len(objectives) != _PAIR:
        raise ValueError(f"objectives must be {_PAIR} metrics, got {len(objectives)}")
    signs = {metric: sign_of(mode) for metric, mode in objectives.items()}
    first, second = objectives
    found = [one for one in trials_of(source) if first in one.values and second in one.values]
    if not found:
        raise ValueError(f"no trial has reported both {first!r} and {second!r}")
    pairs = [
        (signs[first] * one.values[first], signs[second] * one.values[second]) for one in found
    ]
    return found, pairs
