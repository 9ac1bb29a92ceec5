"""Scalarization: conversion of a report to the result that a tuner receives.

A single-objective tuner receives one number: the objective, or a scalarized loss of several
objectives. A tuner with `multi_objective` receives whole reports. An infeasible result is worse
than every feasible one, increasing with its violation.

Source of the scalarized loss: the augmented Chebyshev function of Knowles, ParEGO, IEEE
Transactions on Evolutionary Computation 10(1), 2006, section III.

Departures: the loss is the minimum over several fixed weightings, so that every part of the front
is good; the scales are fixed by the first results, so that the loss of a result does not depend on
its time.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import DEFAULT_METRIC, Objectives, part_of

_SUM_WEIGHT: Final = 0.05
"""Weight of the sum of objectives beside their maximum (rho of the source)."""
_FIRST: Final = 10
"""Results that determine the scales; withheld until all of them exist."""
_BEYOND: Final = 1e3
"""Loss above that of every feasible result."""
_TILT: Final = 0.3
"""Sum of the weights of the other objectives in a weighting that favours one."""


@dataclass(frozen=True, slots=True)
class TunerResult:
    """Configuration with the value that a tuner receives for it."""

    parameters: JsonValue
    value: JsonValue


@dataclass(slots=True)
class Scalarizer:
    """Converter of reports to single losses, with weights and constraint penalties.

    The loss of an infeasible result depends on feasible ones; infeasible results are withheld until
    the first feasible one.
    """

    objectives: Objectives
    vector: bool
    """True if the tuner receives whole reports."""
    _first: list[tuple[JsonValue, tuple[float, ...], float]] = field(default_factory=list)
    """First results of several objectives: configuration, losses and violation."""
    _withheld: list[tuple[JsonValue, float]] = field(default_factory=list)
    """Infeasible configurations and their violations."""
    _least: float = 0.0
    _largest: float = 0.0
    """Range of the feasible losses of a single objective; undefined before the first."""
    _feasible: int = 0

    @property
    def optimize_mode(self) -> str:
        """Mode of the tuner's numbers: `minimize` with several objectives, else the objective's."""
        return "minimize" if self.objectives.several else self.objectives.items[0].mode

    def tuner_results(self, parameters: JsonValue, value: JsonValue) -> list[TunerResult]:
        """Return results for the tuner: the new one, then withheld ones; none if it is withheld.

        Args:
            parameters: configuration of the trial.
            value: its report.
        """
        if self.vector:
            return [TunerResult(parameters, value)]
        if self.objectives.several:
            return self._combined(parameters, value)
        if not self.objectives.limits:
            return [TunerResult(parameters, self._own(value))]
        return self._limited(parameters, value)

    def tuner_intermediates(self, reports: list[JsonValue]) -> list[JsonValue]:
        """Return intermediate results as the tuner receives them; empty where losses are combined.

        Args:
            reports: of a trial, oldest first.
        """
        if self.vector:
            return reports
        if self.objectives.several or self.objectives.limits:
            return []  # the loss of a result depends on others
        return [self._own(report) for report in reports]

    def _own(self, value: JsonValue) -> JsonValue:
        metric = self.objectives.items[0].metric
        return value if metric == DEFAULT_METRIC else part_of(value, metric)

    def _combined(self, parameters: JsonValue, value: JsonValue) -> list[TunerResult]:
        losses = self.objectives.losses(value)
        if losses is None:
            return []
        result = (parameters, losses, self.objectives.excess(value))
        if len(self._first) >= _FIRST:
            return [self._scored(result)]
        self._first.append(result)
        if len(self._first) < _FIRST:
            return []
        return [self._scored(first) for first in reversed(self._first)]

    def _scored(self, result: tuple[JsonValue, tuple[float, ...], float]) -> TunerResult:
        parameters, losses, excess = result
        scales = _scales([losses for _, losses, _ in self._first])
        loss = min(scale.loss(losses) for scale in scales)
        if excess > 0:
            loss = max(loss, 0.0) + _BEYOND * (1.0 + _squashed(excess))
        return TunerResult(parameters, loss)

    def _limited(self, parameters: JsonValue, value: JsonValue) -> list[TunerResult]:
        excess = self.objectives.excess(value)
        if excess > 0:
            if not self._feasible:
                self._withheld.append((parameters, excess))
                return []
            return [self._beyond(parameters, excess)]
        losses = self.objectives.losses(value)
        if losses is None:
            return []
        (loss,) = losses
        self._least = min(self._least, loss) if self._feasible else loss
        self._largest = max(self._largest, loss) if self._feasible else loss
        self._feasible += 1
        withheld, self._withheld = self._withheld, []
        return [
            TunerResult(parameters, self._own(value)),
            *(self._beyond(other, by) for other, by in withheld),
        ]

    def _beyond(self, parameters: JsonValue, excess: float) -> TunerResult:
        """Return an infeasible result, with a loss one to two spreads above the worst feasible."""
        spread = (self._largest - self._least) or max(abs(self._largest), 1.0)
        loss = self._largest + spread * (1.0 + _squashed(excess))
        return TunerResult(parameters, -loss if self.optimize_mode == "maximize" else loss)

    def state(self) -> JsonValue:
        """Return first results, withheld results and the range of losses as JSON."""
        return [self._first, self._withheld, self._least, self._largest, self._feasible]

    def load_state(self, state: JsonValue) -> None:
        """Restore first results, withheld results and the range of losses from a state."""
        first, withheld, self._least, self._largest, self._feasible = state
        self._first = [(parameters, tuple(losses), excess) for parameters, losses, excess in first]
        self._withheld = [(parameters, excess) for parameters, excess in withheld]


@dataclass(frozen=True, slots=True)
class _Scale:
    """Chebyshev weights of the objectives, with origin and units from the first results."""

    weights: tuple[float, ...]
    origin: tuple[float, ...]
    """Per objective, a value better than all first results."""
    units: tuple[float, ...]
    """Per objective, the spread of the first results."""
    middle: float = 0.0
    """Median raw loss of the first results."""
    unit: float = 1.0
    """Distance of the best raw loss from the median."""

    def raw(self, losses: Sequence[float]) -> float:
        """Return the augmented Chebyshev loss: largest weighted part, plus a share of the sum."""
        parts = [
            weight * (loss - origin) / unit
            for weight, loss, origin, unit in zip(
                self.weights, losses, self.origin, self.units, strict=True
            )
        ]
        return max(parts) + _SUM_WEIGHT * sum(parts)

    def loss(self, losses: Sequence[float]) -> float:
        """Return the loss scaled by the first results: 0 is their median, -1 their best."""
        return (self.raw(losses) - self.middle) / self.unit


def _scales(first: list[tuple[float, ...]]) -> list[_Scale]:
    """Return one scale per weight vector, with units and median from the first results."""
    columns = list(zip(*first, strict=True))
    units = tuple((median(column) - min(column)) or 1.0 for column in columns)
    origin = tuple(min(column) - unit for column, unit in zip(columns, units, strict=True))
    scales = []
    for weights in _weightings(len(columns)):
        plain = _Scale(weights, origin, units)
        raw = [plain.raw(losses) for losses in first]
        middle = median(raw)
        scales.append(replace(plain, middle=middle, unit=(middle - min(raw)) or 1.0))
    return scales


def _weightings(count: int) -> list[tuple[float, ...]]:
    """Return weight vectors: an even one, and one that favours each objective."""
    rest = _TILT / (count - 1)
    favouring = [
        tuple(1 - _TILT if k == favoured else rest for k in range(count))
        for favoured in range(count)
    ]
    return [(1.0 / count,) * count, *favouring]


def _squashed(excess: float) -> float:
    """Return a number in (0, 1] that increases with the violation."""
    return excess / (1.0 + excess) if excess < float("inf") else 1.0
