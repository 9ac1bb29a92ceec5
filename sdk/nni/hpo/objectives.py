"""Objectives of a search: metrics with their modes, and limits on outcomes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, SupportsFloat, TypeAlias, cast

from nni.hpo.json_value import JsonValue

OptimizeMode: TypeAlias = Literal["maximize", "minimize"]


def checked_optimize_mode(mode: str) -> OptimizeMode:
    """Return the mode; raise ValueError unless it is `maximize` or `minimize`.

    Raises:
        ValueError: the mode is neither `maximize` nor `minimize`.
    """
    if mode not in {"maximize", "minimize"}:
        raise ValueError(f"optimize_mode must be 'maximize' or 'minimize', got {mode!r}")
    return cast("OptimizeMode", mode)


DEFAULT_METRIC: Final = "default"
"""Metric name of a report that is a plain number."""


@dataclass(frozen=True, slots=True)
class Objective:
    """Metric to optimise, with its direction.

    Examples:
        >>> from nni.hpo import Objective
        >>> Objective("accuracy", "maximize")
        Objective(metric='accuracy', mode='maximize')
    """

    metric: str
    """Name of the metric in reports; `default` for a report that is a plain number."""
    mode: OptimizeMode
    """`minimize` or `maximize`."""


@dataclass(frozen=True, slots=True)
class OutcomeLimit:
    """Upper limit on a metric; a trial beyond the limit is infeasible."""

    metric: str
    """Name of the metric in reports."""
    max: float
    """Largest feasible value."""


@dataclass(frozen=True, slots=True)
class Objectives:
    """All objectives of a search, with limits on outcomes.

    Examples:
        >>> from nni.hpo import Objective, Objectives
        >>> items = (Objective("loss", "minimize"), Objective("accuracy", "maximize"))
        >>> objectives = Objectives(items)
        >>> objectives.losses({"loss": 0.3, "accuracy": 0.9})
        (0.3, -0.9)
    """

    items: tuple[Objective, ...]
    """At least one."""
    limits: tuple[OutcomeLimit, ...] = ()
    """Upper limits on metrics; a trial beyond one is infeasible."""

    @property
    def several(self) -> bool:
        """True if there is more than one objective."""
        return len(self.items) > 1

    def numbers(self, value: JsonValue) -> dict[str, float] | None:
        """Return the finite number of each objective in a report; None if one is missing.

        Args:
            value: the report: a number for the metric `default`, or a dict by metric.

        Returns:
            Numbers by metric; None unless all are there and finite.
        """
        found = {item.metric: scalar_metric(part_of(value, item.metric)) for item in self.items}
        numbers = {metric: number for metric, number in found.items() if number is not None}
        return numbers if len(numbers) == len(self.items) else None

    def losses(self, value: JsonValue) -> tuple[float, ...] | None:
        """Return a report's loss per objective, to be minimised; None if one is missing.

        Args:
            value: the report: a number for the metric `default`, or a dict by metric.

        Returns:
            Losses in the order of the objectives; None unless all are there and finite.
        """
        losses = [loss_of(part_of(value, item.metric), item.mode) for item in self.items]
        known = tuple(loss for loss in losses if loss is not None)
        return known if len(known) == len(losses) else None

    def excess(self, value: JsonValue) -> float:
        """Return the sum of a report's violations of the limits; infinite if one is missing.

        Args:
            value: the report: a number for the metric `default`, or a dict by metric.

        Returns:
            The sum in the units of the metrics, 0 if feasible. A metric with a limit that is
            missing or not finite counts as infinite.
        """
        total = 0.0
        for limit in self.limits:
            number = scalar_metric(part_of(value, limit.metric))
            total += math.inf if number is None else max(0.0, number - limit.max)
        return total


def require_numbers(subject: str, value: JsonValue, objectives: Objectives) -> None:
    """Raise TypeError unless a report has a number, finite or not, for each objective.

    Args:
        subject: beginning of the error message, such as `value must be`.
        value: the report.
        objectives: metrics that the report must have.

    Raises:
        TypeError: an objective has no number.
    """
    for item in objectives.items:
        if not is_numeric(part_of(value, item.metric)):
            if item.metric == DEFAULT_METRIC:
                raise TypeError(f"{subject} a number or a dict with 'default', got {value!r:.200}")
            raise TypeError(
                f"{subject} a dict with a number for {item.metric!r}, got {value!r:.200}"
            )


MINIMIZED: Final = Objectives((Objective(DEFAULT_METRIC, "minimize"),))
"""Default: minimise the metric `default`."""


def part_of(value: JsonValue, metric: str) -> JsonValue:
    """Return a metric's value in a report, None if missing; a plain report is `default` alone."""
    if isinstance(value, dict):
        return value.get(metric)
    return value if metric == DEFAULT_METRIC else None


def objectives_of(optimize_mode: object, limits: Sequence[object] | None = None) -> Objectives:
    """Return objectives of `optimize_mode` and limits as users write them; ValueError if wrong.

    Args:
        optimize_mode: mode of the metric `default`, or an ordered dict of metric to mode.
        limits: dicts with `metric` and `max`.

    Raises:
        ValueError: a mode, a name or a limit breaks a rule.
    """
    if isinstance(optimize_mode, str):
        items: tuple[Objective, ...] = (
            Objective(DEFAULT_METRIC, checked_optimize_mode(optimize_mode)),
        )
    elif isinstance(optimize_mode, Mapping) and len(optimize_mode) > 0:
        items = tuple(
            Objective(_checked_name(metric), checked_optimize_mode(mode))
            for metric, mode in optimize_mode.items()
        )
    else:
        raise ValueError(
            "optimize_mode must be 'maximize', 'minimize' or a dict of metric to one of them, "
            f"got {optimize_mode!r}"
        )
    return Objectives(items, tuple(map(_checked_limit, limits or ())))


def _checked_name(metric: object) -> str:
    if not isinstance(metric, str) or not metric:
        raise ValueError(f"the name of a metric must be a string that is not empty, got {metric!r}")
    return metric


def _checked_limit(limit: object) -> OutcomeLimit:
    if not isinstance(limit, Mapping) or limit.keys() != {"metric", "max"}:
        raise ValueError(f"constraints must be dicts with 'metric' and 'max', got {limit!r:.200}")
    most = limit["max"]
    if isinstance(most, bool) or not isinstance(most, int | float) or math.isnan(most):
        raise ValueError(f"max of the constraint on {limit['metric']!r} must be a number: {most!r}")
    return OutcomeLimit(_checked_name(limit["metric"]), float(most))


_NUMERIC: Final = (float, int, SupportsFloat)
"""The common types first: the check for the method takes ten times as long."""


def scalar_metric(value: object) -> float | None:
    """Return the metric of a report as a finite float; None if it is not one.

    Args:
        value: a number, or a dict whose `default` is one.

    Returns:
        None if the number is missing, not numeric, NaN or infinite. Such a value is legal to
        report and must not enter a model.
    """
    if isinstance(value, dict):
        value = value.get("default")
    if isinstance(value, bool) or not isinstance(value, _NUMERIC):
        return None  # also str, although float("1") exists
    try:
        number = float(value)
    except (OverflowError, TypeError, ValueError):  # a huge int, or an array of several numbers
        return None
    return number if math.isfinite(number) else None


def is_numeric(value: object) -> bool:
    """Return whether `value`, or its `default`, is a number, finite or not."""
    if isinstance(value, dict):
        value = value.get("default")
    return isinstance(value, _NUMERIC) and not isinstance(value, bool)


def loss_of(value: object, optimize_mode: OptimizeMode) -> float | None:
    """Return the metric of a report as a loss to be minimised; None as for `scalar_metric`."""
    number = scalar_metric(value)
    if number is None:
        return None
    return -number if optimize_mode == "maximize" else number
