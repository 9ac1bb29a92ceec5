"""The one place where a report becomes what a tuner learns.

A tuner that is made for one number gets one: the objective itself, or, of several objectives, a
loss that is low where none of them is bad. A tuner that says `multi_objective` gets reports as they
are. A result beyond a limit counts as worse than every feasible one, by how far it is beyond.

Source of the loss of several objectives: the augmented Chebyshev function of Knowles, ParEGO, IEEE
Transactions on Evolutionary Computation 10(1), 2006, section III.

Departures: a result gets the best of the losses that several weightings give it, so that any part
of the front is good; the scales are those of the first results and stay, so that a result is worth
the same whenever it comes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Final

from nni.hpo.json_value import JsonValue
from nni.hpo.objectives import DEFAULT_METRIC, Objectives, part_of

_SUM_WEIGHT: Final = 0.05
"""Of the sum of the objectives beside the largest one (rho of the source)."""
_FIRST: Final = 10
"""Results that make the scales, and are kept back until they are there."""
_BEYOND: Final = 1e3
"""Loss that no result within the limits has."""
_TILT: Final = 0.3
"""Weight that the favoured objective of an uneven weighting leaves to the others."""


@dataclass(frozen=True, slots=True)
class TunerResult:
    """One result as a tuner is to learn it."""

    parameters: JsonValue
    value: JsonValue


@dataclass(slots=True)
class Scalarizer:
    """Turns reports into tuner_results.

    What is beyond a limit can be told how bad it is only when something is within: until then it
    is kept back.
    """

    objectives: Objectives
    vector: bool
    """Whether the tuner takes whole reports."""
    _first: list[tuple[JsonValue, tuple[float, ...], float]] = field(default_factory=list)
    """Of several objectives the first results: configuration, losses and excess."""
    _withheld: list[tuple[JsonValue, float]] = field(default_factory=list)
    """Configurations beyond a limit, and by how much."""
    _least: float = 0.0
    _largest: float = 0.0
    """Losses of the feasible results of an only objective; of no meaning before the first."""
    _feasible: int = 0

    @property
    def optimize_mode(self) -> str:
        """In which way the tuner's numbers improve."""
        return "minimize" if self.objectives.several else self.objectives.items[0].mode

    def tuner_results(self, parameters: JsonValue, value: JsonValue) -> list[TunerResult]:
        """Return what the tuner is to learn now: the new result first, if it is among it.

        Args:
            parameters: of the trial.
            value: what it reported.
        """
        if self.vector:
            return [TunerResult(parameters, value)]
        if self.objectives.several:
            return self._combined(parameters, value)
        if not self.objectives.limits:
            return [TunerResult(parameters, self._own(value))]
        return self._limited(parameters, value)

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
        """Return the lesson of a result beyond a limit: one to two spreads above the worst."""
        spread = (self._largest - self._least) or max(abs(self._largest), 1.0)
        loss = self._largest + spread * (1.0 + _squashed(excess))
        return TunerResult(parameters, -loss if self.optimize_mode == "maximize" else loss)

    def state(self) -> JsonValue:
        """Return what `load_state` needs, as JSON."""
        return [self._first, self._withheld, self._least, self._largest, self._feasible]

    def load_state(self, state: JsonValue) -> None:
        """Go on from a state."""
        first, withheld, self._least, self._largest, self._feasible = state
        self._first = [(parameters, tuple(losses), excess) for parameters, losses, excess in first]
        self._withheld = [(parameters, excess) for parameters, excess in withheld]


@dataclass(frozen=True, slots=True)
class _Scale:
    """One weighting of the objectives."""

    weights: tuple[float, ...]
    origin: tuple[float, ...]
    """What is better than all first results, per objective."""
    units: tuple[float, ...]
    """How far the objectives of the first results differ."""
    middle: float = 0.0
    """Raw loss of an average first result."""
    unit: float = 1.0
    """How much the best of them is below it."""

    def raw(self, losses: Sequence[float]) -> float:
        """Return the weighted loss."""
        parts = [
            weight * (loss - origin) / unit
            for weight, loss, origin, unit in zip(
                self.weights, losses, self.origin, self.units, strict=True
            )
        ]
        return max(parts) + _SUM_WEIGHT * sum(parts)

    def loss(self, losses: Sequence[float]) -> float:
        """Return the weighted loss on the scale of the first results: 0 is average, -1 the best."""
        return (self.raw(losses) - self.middle) / self.unit


def _scales(first: list[tuple[float, ...]]) -> list[_Scale]:
    """Return the weightings, scaled by the first results."""
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
    """Return weights of objectives: even ones, and such that favour one of them."""
    rest = _TILT / (count - 1)
    favouring = [
        tuple(1 - _TILT if k == favoured else rest for k in range(count))
        for favoured in range(count)
    ]
    return [(1.0 / count,) * count, *favouring]


def _squashed(excess: float) -> float:
    """Return a number in (0, 1] that grows with `excess`."""
    return excess / (1.0 + excess) if excess < float("inf") else 1.0
