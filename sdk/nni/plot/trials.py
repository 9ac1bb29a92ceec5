"""Trials as charts need them, from every source that has trials."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from nni.csv_cells import unguarded_text

DEFAULT_METRIC: Final = "default"
_PARAMETER: Final = "parameter"


@dataclass(frozen=True, slots=True)
class PlottedTrial:
    """One trial: parameters by path, value by metric, curve, times and machine.

    Args:
        number: position in the order of creation, from 0.
        parameters: scalar values by path: `optimizer/rate` of a nested choice.
        values: finite final results by metric.
        intermediates: reports in order: numbers, or numbers by metric.
        status: state, such as `SUCCEEDED`, `FAILED` or `EARLY_STOPPED`.
        started_s: seconds since 1970; None: it has not started.
        ended_s: seconds since 1970; None: it has not ended.
        machine: machine or agent that runs it; empty: unknown.
        id: of the trial in its experiment; empty: it has none.
        tuner: label or name of the tuner that proposed it; empty: unknown.

    Examples:
        >>> from nni.plot import PlottedTrial
        >>> PlottedTrial(0, {"x": 0.5}, {"default": 2.0}).value()
        2.0
    """

    number: int
    parameters: Mapping[str, Any]
    values: Mapping[str, float] = field(default_factory=dict)
    intermediates: tuple[Any, ...] = ()
    status: str = "SUCCEEDED"
    started_s: float | None = None
    ended_s: float | None = None
    machine: str = ""
    id: str = ""
    tuner: str = ""

    def value(self, metric: str = DEFAULT_METRIC) -> float | None:
        """Return the final result of a metric; None if there is none that is finite.

        Args:
            metric: which one.

        Returns:
            The result; None: there is none that is finite.

        Examples:
            >>> from nni.plot import PlottedTrial
            >>> PlottedTrial(0, {}, {"size": 3.0}).value("size")
            3.0
        """
        return self.values.get(metric)

    def curve(self, metric: str = DEFAULT_METRIC) -> list[float]:
        """Return the intermediate results of a metric: NaN where one lacks it, [] if all do.

        Args:
            metric: which one.

        Returns:
            A number for each report, NaN where it lacks the metric; empty if all do.

        Examples:
            >>> from nni.plot import PlottedTrial
            >>> PlottedTrial(0, {}, intermediates=(0.5, {"size": 1})).curve()
            [0.5, nan]
        """
        found = [numbers(report).get(metric, math.nan) for report in self.intermediates]
        return found if any(math.isfinite(value) for value in found) else []


def trials_of(source: Any) -> list[PlottedTrial]:  # noqa: ANN401 - every source that has trials
    """Convert a study, result, experiment, exported file or list to trials for plots.

    Args:
        source: a `Study`, the result of `optimize` or `simulate`, an `Experiment` or another
            object with `list_trial_jobs`, the path of a file that `nnictl experiment export` has
                written, or a sequence of `PlottedTrial`.

    Returns:
        The trials, in the order of their creation.

    Raises:
        TypeError: it is none of these.
        ValueError: a file has another content.

    Examples:
        >>> from nni.hpo import optimize
        >>> from nni.plot import trials_of
        >>> space = {"x": {"_type": "choice", "_value": [1, 2]}}
        >>> found = trials_of(optimize(lambda p: p["x"], space, tuner="GridSearch"))
        >>> [trial.value() for trial in found]
        [1.0, 2.0]
    """
    if isinstance(source, str | Path):
        return _from_file(Path(source))
    if hasattr(source, "list_trial_jobs"):
        return _from_experiment(source)
    if hasattr(source, "trials"):
        return [_from_record(record) for record in source.trials]
    if hasattr(source, "results") and not callable(source.results):
        return [
            PlottedTrial(trial.id, flat(trial.parameters), numbers(value))
            for trial, value in source.results
        ]
    if isinstance(source, Sequence) and all(isinstance(one, PlottedTrial) for one in source):
        return list(source)
    raise TypeError(
        "source must be a Study, the result of optimize, an Experiment, an exported file or "
        f"a list of PlottedTrial; got {type(source).__name__}"
    )


def numbers(result: Any) -> dict[str, float]:  # noqa: ANN401 - any result
    """Return the finite numbers of a result by metric; a plain number is `default`."""
    entries = result.items() if isinstance(result, Mapping) else [(DEFAULT_METRIC, result)]
    return {
        str(name): float(value)
        for name, value in entries
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }


def flat(parameters: Any, prefix: str = "") -> dict[str, Any]:  # noqa: ANN401 - any JSON value
    """Return scalars by path; the `_name` of a branch is the value of the path itself.

    Examples:
        >>> from nni.plot.trials import flat
        >>> flat({"a": 1, "model": {"_name": "mlp", "depth": 2}})
        {'a': 1, 'model': 'mlp', 'model/depth': 2}
    """
    if not isinstance(parameters, Mapping):
        return {prefix or "value": _scalar(parameters)}
    found: dict[str, Any] = {}
    for name, value in parameters.items():
        path = f"{prefix}/{name}" if prefix else str(name)
        if name == "_name":
            found[prefix or "_name"] = value
        elif isinstance(value, Mapping):
            found |= flat(value, path)
        else:
            found[path] = _scalar(value)
    return found


def _scalar(value: object) -> object:
    """Return a number, text or None as it is, any other value as JSON text."""
    return value if isinstance(value, int | float | str | None) else json.dumps(value)


def _from_record(record: Any) -> PlottedTrial:  # noqa: ANN401 - a TrialRecord, or one of a simulation
    result = getattr(record, "result", None)
    values = numbers(result if result is not None else record.value)
    return PlottedTrial(
        record.id,
        flat(record.parameters),
        values,
        tuple(getattr(record, "intermediate", ())),
        getattr(record, "status", "SUCCEEDED"),
    )


def _from_experiment(experiment: Any) -> list[PlottedTrial]:  # noqa: ANN401 - has its methods
    curves: dict[str, list[Any]] = {}
    for trial_id, metrics in experiment.get_job_metrics().items():
        curves[trial_id] = [one.data for one in metrics if one.type == "PERIODICAL"]
    found = []
    for job in experiment.list_trial_jobs():
        final = job.finalMetricData[0].data if job.finalMetricData else None
        parameters = job.hyperParameters[-1].parameters if job.hyperParameters else {}
        found.append(
            PlottedTrial(
                job.sequenceId,
                flat(parameters),
                numbers(final),
                tuple(curves.get(job.trialJobId, ())),
                job.status,
                _seconds(job.startTime),
                _seconds(job.endTime),
                str(getattr(job, "machine", "") or ""),
                job.trialJobId,
                str(getattr(job, "tuner", "") or ""),
            )
        )
    return found


def _seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


def _from_file(path: Path) -> list[PlottedTrial]:
    text = path.expanduser().read_text("utf-8")
    if path.suffix == ".csv":
        rows = csv.DictReader(io.StringIO(text, newline=""))  # a quoted value may hold line ends
        return [_from_row(number, _unguarded(row)) for number, row in enumerate(rows)]
    try:
        records = json.loads(text)
    except ValueError as error:
        raise ValueError(f"source must be JSON or end in .csv, got {path}: {error}") from error
    if not isinstance(records, list) or not all(
        isinstance(one, Mapping) and _PARAMETER in one for one in records
    ):
        raise ValueError(
            f"source must be a file of `nnictl experiment export --type json`, got {path}"
        )
    return [
        PlottedTrial(
            number,
            flat(record[_PARAMETER]),
            numbers(record.get("value")),
            tuple(record.get("intermediate", ())),
            id=str(record.get("id", "")),
        )
        for number, record in enumerate(records)
    ]


def _unguarded(row: Mapping[str, str]) -> dict[str, str]:
    """Return a row without the quotes in front of what looks like formulas."""
    return {unguarded_text(name): unguarded_text(text) for name, text in row.items()}


def _from_row(number: int, row: Mapping[str, str]) -> PlottedTrial:
    """Return the trial of a row: columns before `reward` are parameters, later ones metrics."""
    names = list(row)
    if "reward" not in names:
        raise ValueError("source must be a file of `nnictl experiment export --type csv`")
    place = names.index("reward")
    metrics = {name: _parsed(row[name]) for name in names[place + 1 :] if name != "intermediate"}
    curve = _parsed(row.get("intermediate", "") or "[]")
    return PlottedTrial(
        number,
        {name: _parsed(row[name]) for name in names[:place] if name != "id"},
        numbers({DEFAULT_METRIC: _parsed(row["reward"]), **metrics}),
        tuple(curve) if isinstance(curve, list) else (),
        id=row.get("id", ""),
    )


def _parsed(text: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(text)
    except ValueError:
        return text


def finished(trials: Iterable[PlottedTrial], metric: str) -> list[PlottedTrial]:
    """Return the trials with a final result of a metric; raise ValueError if there is none.

    Raises:
        ValueError: there is none.
    """
    found = list(trials)
    kept = [trial for trial in found if trial.value(metric) is not None]
    if not kept:
        known = sorted({name for trial in found for name in trial.values})
        raise ValueError(
            f"metric must be one that trials have reported ({', '.join(known) or 'none yet'}), "
            f"got {metric!r}"
        )
    return kept
