"""Comparison of two experiments, or of the tuners of one: best results, regret, curves.

Pure functions on values that were read before. Regret is the distance of the best result so far to
the best one of all that are compared; 0 is reached by the best of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, zip_longest
from statistics import median
from typing import Any, Final, Literal, TypeAlias

from nni.experiment.errors import RefusedError

Mode: TypeAlias = Literal["minimize", "maximize"]

_METRIC: Final = "default"
_STEPS: Final = 10
"""Rows of a table of curves."""
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class ComparedExperiment:
    """Configuration and results of an experiment that is compared.

    Attributes:
        id: of the experiment.
        config: fields as in YAML.
        values: result of each trial in order of creation; `None`: it has none that is finite.
        curve: intermediate results of the best trial, in order of arrival.
    """

    id: str
    config: Mapping[str, Any]
    values: tuple[float | None, ...]
    curve: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Field of a configuration that two experiments have differently; `None`: it is not given."""

    field: str
    first: Any
    second: Any


@dataclass(frozen=True, slots=True)
class RegretRow:
    """Best results after a number of trials, and their distance to the best of both."""

    trials: int
    best: tuple[float | None, float | None]
    regret: tuple[float | None, float | None]


@dataclass(frozen=True, slots=True)
class TunerRow:
    """Trials and results of one of several tuners of an experiment; None without results.

    Attributes:
        tuner: label or name; empty for trials that no tuner proposed.
        trials: number of its trials.
        with_result: number of those with a finite result.
        best: its best result.
        regret: distance of `best` to the best result of all trials of the experiment.
        median: of its results.
    """

    tuner: str
    trials: int
    with_result: int
    best: float | None
    regret: float | None
    median: float | None


def number_of(value: Any, metric: str = _METRIC) -> float | None:  # noqa: ANN401 - any result
    """Return the finite number of a metric in a result; None if there is none.

    Args:
        value: a number, or a mapping of metrics.
        metric: its name; `default` for a plain number.
    """
    if isinstance(value, Mapping):
        found = value.get(metric)
    else:
        found = value if metric == _METRIC else None
    if isinstance(found, bool) or not isinstance(found, int | float):
        return None
    try:
        number = float(found)
    except OverflowError:  # an integer may have any number of digits
        return None
    return number if math.isfinite(number) else None


def objective_of(config: Mapping[str, Any]) -> tuple[str, Mode]:
    """Return the first metric and mode of an experiment; `default`, `maximize` if not given.

    Without either in the configuration they are `default` and `maximize`, as documented.

    Args:
        config: fields as in YAML.
    """
    objectives = config.get("objectives") or []
    if objectives:
        first = objectives[0]
        return str(first.get("metric", _METRIC)), _mode(first.get("mode"))
    for section in ("advisor", "tuner"):
        arguments = (config.get(section) or {}).get("classArgs") or {}
        if "optimize_mode" in arguments:
            return _METRIC, _mode(arguments["optimize_mode"])
    return _METRIC, "maximize"


def _mode(text: object) -> Mode:
    return "minimize" if text == "minimize" else "maximize"


def common_objective(
    first: Mapping[str, Any], second: Mapping[str, Any], metric: str = "", mode: Mode | None = None
) -> tuple[str, Mode]:
    """Return the given metric and mode, else those that both have; raise if these differ.

    Args:
        first: configuration of one.
        second: configuration of the other.
        metric: that the user has named; empty: the experiments' own.
        mode: that the user has named; `None`: the experiments' own.

    Raises:
        RefusedError: they optimize different things, and the user names none.
    """
    (metric_1, mode_1), (metric_2, mode_2) = objective_of(first), objective_of(second)
    if not metric and metric_1 != metric_2:
        raise RefusedError(
            f"the experiments have different first metrics, {metric_1!r} and {metric_2!r}; "
            "name one with --metric"
        )
    if mode is None and mode_1 != mode_2:
        raise RefusedError("one experiment minimizes and the other maximizes; give --mode")
    return metric or metric_1, mode or mode_1


def config_differences(first: Any, second: Any, field: str = "") -> Iterator[Difference]:  # noqa: ANN401 - JSON values
    """Yield the fields in which two configurations differ, by their paths.

    Args:
        first: JSON value of one.
        second: JSON value of the other.
        field: path of the two values.
    """
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        for name in dict.fromkeys([*first, *second]):
            path = f"{field}.{name}" if field else str(name)
            yield from config_differences(first.get(name, _ABSENT), second.get(name, _ABSENT), path)
    elif first != second or type(first) is not type(second):
        yield Difference(field, *(None if one is _ABSENT else one for one in (first, second)))


def best_so_far(values: Sequence[float | None], mode: Mode) -> list[float | None]:
    """Return the best result after each trial; None before the first one."""
    better = min if mode == "minimize" else max

    def step(best: float | None, value: float | None) -> float | None:
        if best is None or value is None:
            return value if best is None else best
        return better(best, value)

    return list(accumulate(values, step))


def regret_rows(
    first: ComparedExperiment, second: ComparedExperiment, mode: Mode
) -> list[RegretRow]:
    """Return best and regret of both by number of trials; the optimum is the better final best."""
    histories = [best_so_far(one.values, mode) for one in (first, second)]
    known = [history[-1] for history in histories if history and history[-1] is not None]
    if not known:
        return []
    optimum = min(known) if mode == "minimize" else max(known)
    rows = []
    for count in _counts({len(history) for history in histories}):
        best = [history[count - 1] if count <= len(history) else None for history in histories]
        regret = [None if one is None else abs(one - optimum) for one in best]
        rows.append(RegretRow(count, (best[0], best[1]), (regret[0], regret[1])))
    return rows


def tuner_rows(results: Sequence[tuple[str, float | None]], mode: Mode) -> list[TunerRow]:
    """Return trials, best, regret and median per tuner, in the order of their first trials.

    Args:
        results: tuner and result of each trial; None: it has none that is finite.
        mode: what is best.
    """
    better = min if mode == "minimize" else max
    every = [value for _, value in results if value is not None]
    optimum = better(every) if every else None
    rows = []
    for tuner in dict.fromkeys(label for label, _ in results):
        own = [value for label, value in results if label == tuner]
        known = [value for value in own if value is not None]
        best = better(known) if known else None
        regret = None if best is None or optimum is None else abs(best - optimum)
        middle = median(known) if known else None
        rows.append(TunerRow(tuner, len(own), len(known), best, regret, middle))
    return rows


def curve_rows(
    first: Sequence[float], second: Sequence[float]
) -> list[tuple[int, float | None, float | None]]:
    """Return step and values of two curves, about ten rows, the last ones of both included."""
    pairs = list(zip_longest(first, second))
    last = {len(first), len(second)} - {0}
    stride = max(1, math.ceil(len(pairs) / _STEPS))
    steps = sorted({*range(1, len(pairs) + 1, stride), *last})
    return [(step, *pairs[step - 1]) for step in steps]


def _counts(ends: set[int]) -> list[int]:
    """Return the trial counts 1, 2, 5, 10, 20, ... up to the longest run, and each run's length."""
    longest = max(ends)
    decades = range(len(str(longest)))
    steps = {factor * 10**power for power in decades for factor in (1, 2, 5)}
    return sorted({one for one in steps if one <= longest} | (ends - {0}))
