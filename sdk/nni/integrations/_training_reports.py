"""Reports of a training loop to its trial, which all callbacks share."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Protocol, TypeAlias

import nni

MetricNames: TypeAlias = str | Mapping[str, str]
"""Name of the metric in the library; or names by the key in a report that is a dict."""
FinalResult: TypeAlias = Literal["last", "min", "max"]
"""Report that is the result of the trial: the last one, or that with the best `default`."""

_FINAL_RESULTS = ("last", "min", "max")


class StoppableTrial(Protocol):
    """Protocol of a trial within `nni.hpo.optimize`, as `nni.hpo.TrialReporter` is."""

    def report(self, value: Any) -> None:  # noqa: ANN401 - any JSON value
        """Report an intermediate result."""
        ...

    def should_stop(self) -> bool:
        """Return whether the trial is to end now."""
        ...


class TrainingReports:
    """Reporter of one training run: sends each step's metrics, and keeps the result.

    Args:
        metric: name of the metric in the library; or a dict of key in the report to such a name.
        trial: trial of `nni.hpo.optimize`; None: the trial of this process.
        final: report that is the result.

    Raises:
        ValueError: an argument is none of those allowed.
        TypeError: `metric` is neither a name nor a dict.
    """

    def __init__(
        self,
        metric: MetricNames,
        trial: StoppableTrial | None = None,
        final: FinalResult = "last",
    ) -> None:
        _check_names(metric)
        if final not in _FINAL_RESULTS:
            allowed = ", ".join(map(repr, _FINAL_RESULTS))
            raise ValueError(f"final must be one of {allowed}, got {final!r}")
        self._metric = metric
        self._trial = trial
        self._final = final
        self._is_finished = False
        self.result: Any = None
        """Result so far: a number or a dict; None before the first report."""

    def step(self, values: Mapping[str, Any]) -> bool:
        """Report the metrics of a step; return whether a trial of `optimize` is to stop.

        Args:
            values: numbers by the library's names, more than are reported.

        Raises:
            ValueError: a metric to report is missing.
        """
        value = self._value(values)
        self._note(value)
        if self._trial is None:
            # An experiment ends the process of a trial that is to stop.
            nni.report_intermediate_result(value)
            return False
        self._trial.report(value)
        return self._trial.should_stop()

    def take_up(self, values: Mapping[str, Any]) -> None:
        """Count an earlier attempt's step for the result, unreported; skip it without the metrics.

        Args:
            values: see `step`.
        """
        names = [self._metric] if isinstance(self._metric, str) else self._metric.values()
        if all(name in values for name in names):
            self._note(self._value(values))

    def finish(self) -> None:
        """Report the result to the experiment, once; nothing in `optimize` or without a step.

        A trial of `optimize` gets the result from its objective, which returns `result`.
        """
        if self._trial is None and self.result is not None and not self._is_finished:
            self._is_finished = True
            nni.report_final_result(self.result)

    def _note(self, value: Any) -> None:  # noqa: ANN401 - a number or a dict
        if self.result is None or _is_result(value, self.result, self._final):
            self.result = value

    def _value(self, values: Mapping[str, Any]) -> Any:  # noqa: ANN401 - a number or a dict
        if isinstance(self._metric, str):
            return _number(values, self._metric)
        return {key: _number(values, name) for key, name in self._metric.items()}


class BoostingCallback:
    """Base of boosting libraries' callbacks: checks arguments, holds the reports and `result`.

    Args:
        metric: see `TrainingReports`.
        trial: see `TrainingReports`.
        final: see `TrainingReports`.
        every: number of iterations from one report to the next.

    Raises:
        ValueError: an argument is wrong.
        TypeError: `metric` is neither a name nor a dict.
    """

    def __init__(
        self,
        metric: MetricNames,
        *,
        trial: StoppableTrial | None = None,
        final: FinalResult = "last",
        every: int = 1,
    ) -> None:
        super().__init__()  # the base of the library, where there is one
        check_period(every)
        self._reports = TrainingReports(metric, trial, final)
        self._every = every

    @property
    def result(self) -> Any:  # noqa: ANN401 - a number or a dict
        """Result of the training so far, for an objective to return; None before a report."""
        return self._reports.result


def metrics_by_name(results: Iterable[tuple[str, str, float]]) -> dict[str, float]:
    """Return metrics under `<data set>-<metric>`, and also under `<metric>` where that is unique.

    Args:
        results: data set, metric and value of each.
    """
    found: dict[str, float] = {}
    short: dict[str, float | None] = {}
    for dataset, metric, value in results:
        found[f"{dataset}-{metric}"] = value
        short[metric] = None if metric in short else value
    for metric, unique in short.items():
        if unique is not None:
            found.setdefault(metric, unique)
    return found


def check_period(every: object) -> None:
    """Raise ValueError unless `every` is an integer of at least 1."""
    if isinstance(every, bool) or not isinstance(every, int) or every < 1:
        raise ValueError(f"every must be an integer >= 1, got {every!r}")


def _check_names(metric: MetricNames) -> None:
    if isinstance(metric, str):
        return
    if not isinstance(metric, Mapping):
        raise TypeError(f"metric must be a name or a dict of names, got {metric!r:.80}")
    if not metric:
        raise ValueError("metric must name at least one metric, got an empty dict")


def _number(values: Mapping[str, Any], name: str) -> float:
    if name not in values:
        raise ValueError(
            f"metric must be one that the training logs, got {name!r}; {_known(values)}"
        )
    return float(values[name])  # also a tensor or an array of one element


def _known(values: Iterable[str]) -> str:
    names = sorted(map(str, values))
    return f"it logs {', '.join(names)}" if names else "it logs none"


def _is_result(value: Any, before: Any, final: FinalResult) -> bool:  # noqa: ANN401 - a number or a dict
    """Return whether a report replaces the result: always if `last`, else if better; NaN loses."""
    if final == "last":
        return True
    new, old = _default(value), _default(before)
    if math.isnan(old) or math.isnan(new):
        return math.isnan(old)
    return new < old if final == "min" else new > old


def _default(value: Any) -> float:  # noqa: ANN401 - a number or a dict
    if isinstance(value, dict):
        return float(value.get("default", next(iter(value.values()))))
    return float(value)
