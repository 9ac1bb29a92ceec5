"""Progress of an exploration: a fold of its log for users."""

from dataclasses import dataclass
from typing import Final

from svc_nas.domain import events

_SUCCEEDED: Final = "SUCCEEDED"
_DEFAULT: Final = "default"
"""Entry of a metric with several numbers by which models are compared."""
_SAMPLE: Final = "sample"
"""Entry of a candidate's parameters: the choices made, by label."""
_ARCHITECTURE: Final = "architecture"
"""Entry of the result of a trial that was a whole search: the choices that it has found."""


@dataclass(frozen=True, slots=True)
class RankedModel:
    """Candidate's choices by label, and the final metric of its trial as reported."""

    trial_id: str
    sample: object
    """Choices by label: decoded JSON."""
    metric: object
    """As reported: a number, or a map with `default`."""

    @property
    def value(self) -> float:
        """Final metric, or its `default`, as a float: larger is better; NaN if it is no number."""
        number = self.metric.get(_DEFAULT) if isinstance(self.metric, dict) else self.metric
        return float(number) if isinstance(number, (int, float)) else float("nan")


class Progress:
    """Mutable fold of an exploration's log: state, counts of candidates, models with a metric.

    Attributes:
        setup: how the exploration was created; None before that.
        generation: number of starts of the strategy.
        state: of the experiment: `RUNNING`, ...; empty before the first.
        paused: whether no trials may run.
        exhausted: whether the strategy has no more candidates.
        candidates: number of recorded candidates.
        succeeded: number of candidates whose trial has succeeded.
        failed: number of candidates whose trial has ended otherwise.

    Examples:
        >>> progress = Progress()
        >>> progress.feed(events.StateChanged("RUNNING"))
        >>> progress.state, progress.running
        ('RUNNING', 0)
    """

    def __init__(self) -> None:
        self.setup: events.ExplorationCreated | None = None
        self.generation = 0
        self.state = ""
        self.paused = False
        self.exhausted = False
        self.ended = False
        self.candidates = 0
        self.succeeded = 0
        self.failed = 0
        self._samples: dict[int, object] = {}
        """Samples of candidates without a trial, by parameter id."""
        self._live: dict[str, object] = {}
        self._models: dict[str, RankedModel] = {}

    @property
    def running(self) -> int:
        """Number of candidates whose trial runs or waits."""
        return len(self._live)

    def feed(self, event: events.Event) -> None:
        """Apply the next event: setup, start, state, pause, candidates, trials, metrics, end."""
        match event:
            case events.ExplorationCreated():
                self.setup = event
            case events.AlgorithmRequested(generation):
                self.generation = generation
                self.exhausted = self.ended = False
                self._samples.clear()
            case events.BudgetChanged(concurrency):
                self.paused = concurrency < 1
            case events.StateChanged(state):
                self.state = state
            case events.ExperimentEnded():
                self.ended = True
            case _:
                self._feed_candidate(event)

    def _feed_candidate(self, event: events.Event) -> None:
        match event:
            case events.CandidatesRecorded(_, candidates, exhausted):
                self.exhausted |= exhausted
                self._samples |= {one.parameter_id: _sample(one.parameters) for one in candidates}
            case events.TrialScheduled(trial_id, parameter_id):
                if parameter_id in self._samples:
                    self.candidates += 1
                    self._live[trial_id] = self._samples.pop(parameter_id)
            case events.MetricReported(trial_id, value, True):
                if trial_id in self._live:
                    self._models[trial_id] = _ranked(trial_id, self._live[trial_id], value)
            case events.TrialEnded(trial_id, state):
                if self._live.pop(trial_id, None) is not None:
                    self.succeeded += state == _SUCCEEDED
                    self.failed += state != _SUCCEEDED

    def top(self, limit: int) -> list[RankedModel]:
        """Return the best models, the largest metric first; without those that have no number."""
        measured = [one for one in self._models.values() if one.value == one.value]
        return sorted(measured, key=lambda one: one.value, reverse=True)[:limit]


def _ranked(trial_id: str, sample: object, metric: object) -> RankedModel:
    """Return a trial's `RankedModel`; a one-shot search's choices are taken from its metric."""
    if sample or not isinstance(metric, dict) or _ARCHITECTURE not in metric:
        return RankedModel(trial_id, sample, metric)
    measured = {name: value for name, value in metric.items() if name != _ARCHITECTURE}
    return RankedModel(trial_id, metric[_ARCHITECTURE], measured)


def _sample(parameters: object) -> object:
    return parameters.get(_SAMPLE, {}) if isinstance(parameters, dict) else {}
