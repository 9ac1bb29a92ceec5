"""Chart of what a search can still gain, by which one decides when to end it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from nni.plot.backends import Backend, draw
from nni.plot.charts import Chart, ChartAxis, Panel, Series
from nni.plot.parameters import nested, observed_space
from nni.plot.progress import Mode, sign_of
from nni.plot.trials import DEFAULT_METRIC, PlottedTrial, finished, trials_of

LEAST_TRIALS: Final = 5
"""Trials before the first bound."""
_POINTS: Final = 10
"""Bounds in the chart, each of which costs a model."""
_MOST_TRIALS: Final = 100
"""Trials of one model: the best one, and others at even distances."""


def improvement(
    source: Any,  # noqa: ANN401 - see trials_of
    search_space: Any = None,  # noqa: ANN401 - see nni.hpo.Study
    *,
    metric: str = DEFAULT_METRIC,
    optimize_mode: Mode = "minimize",
    backend: Backend | None = None,
) -> Any:  # noqa: ANN401 - a figure of a library
    """Return a plotly or matplotlib figure of an upper bound of the gain still possible, by trial.

    The bound is that of the stopping rule `nni.hpo.RegretBound`: where the line has come down to a
    gain that does not matter, the search may end.

    Args:
        source: see `trials_of`.
        search_space: space of the trials; None: it is made from their parameters, and what lies
            beyond them does not count.
        metric: which result.
        optimize_mode: what is best: `minimize` or `maximize`.
        backend: `plotly` or `matplotlib`; None: the first one that is installed.

    Returns:
        A figure of the library.

    Raises:
        ValueError: fewer than five trials have the metric, or one lies outside the space.

    Examples:
        >>> from nni.plot import PlottedTrial, improvement
        >>> trials = [PlottedTrial(n, {"x": n / 9}, {"default": (n / 9) ** 2}) for n in range(10)]
        >>> figure = improvement(trials, backend="matplotlib")
    """
    from nni.hpo.space.typed_space import as_json

    sign = sign_of(optimize_mode)
    trials = finished(trials_of(source), metric)
    if len(trials) < LEAST_TRIALS:
        raise ValueError(
            f"source must have at least {LEAST_TRIALS} trials with {metric!r}, got {len(trials)}"
        )
    space = observed_space(trials) if search_space is None else as_json(search_space)
    counts = _counts(len(trials))
    bounds = [_bound(trials[:count], space, metric, sign) for count in counts]
    marks = [Series("upper bound", counts, bounds, style="line")]
    panel = Panel(ChartAxis("trials"), ChartAxis(f"possible gain of {metric}"), marks)
    return draw(Chart("What can still be gained", [panel]), backend)


def _counts(trials: int) -> list[int]:
    """Return the numbers of trials after which a bound is computed, ascending."""
    steps = min(_POINTS, trials - LEAST_TRIALS + 1) - 1
    if not steps:
        return [trials]
    return [LEAST_TRIALS + (trials - LEAST_TRIALS) * step // steps for step in range(steps + 1)]


def _bound(
    trials: Sequence[PlottedTrial],
    space: Any,  # noqa: ANN401 - see nni.hpo.Study
    metric: str,
    sign: int,
) -> float:
    from nni.hpo.search.stopping_rules import SearchResult, regret_upper_bound

    chosen = list(trials[:: -(-len(trials) // _MOST_TRIALS)])
    best = min(trials, key=lambda trial: sign * trial.values[metric])
    if best not in chosen:
        chosen.append(best)
    results = [
        SearchResult(nested(trial.parameters, space), sign * trial.values[metric])
        for trial in chosen
    ]
    return regret_upper_bound(results, space)
