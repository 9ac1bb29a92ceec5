"""Middleware that evaluates each model several times and reports the mean."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean

from nni.nas.execution import (
    FinalMetricEvent,
    IntermediateMetricEvent,
    ModelEvent,
    TrainingEndEvent,
)
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.metrics import Metrics
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware.base import StrategyMiddleware


@dataclass(slots=True)
class _Evaluations:
    """Evaluations of one model: metrics and states of its copies so far."""

    original: ExecutableModelSpace
    intermediates: list[list[float]]
    """By replica."""
    reported: int = 0
    """Intermediate means that were reported."""
    finals: list[float] = field(default_factory=list)
    statuses: list[ModelStatus] = field(default_factory=list)


class MultipleEvaluation(StrategyMiddleware):
    """Middleware that evaluates several copies of each model and reports the mean metrics.

    The k-th intermediate metrics of the copies become one when all have it. The final metric is the
    mean of all final metrics. The model is trained if all copies are, else it has the first other
    status.

    Args:
        repeat: evaluations of each model, at least 2.
        retain_history: whether `list_models` lists all models; otherwise it lists those that run.

    Raises:
        ValueError: `repeat` is less than 2.

    Examples:
        >>> from nni.nas.strategy import Random
        >>> from nni.nas.strategy.middleware import Chain, MultipleEvaluation
        >>> strategy = Chain(Random(), MultipleEvaluation(3))
        >>> type(strategy[1]).__name__
        'MultipleEvaluation'
    """

    def __init__(
        self,
        repeat: int,
        retain_history: bool = True,  # noqa: FBT001, FBT002 - documented signature
    ) -> None:
        super().__init__(retain_history)
        if repeat < 2:  # noqa: PLR2004 - several
            raise ValueError(f"repeat must be >= 2, got {repeat}")
        self.repeat = repeat
        self._lock = threading.Lock()
        self._replicas: dict[int, tuple[ExecutableModelSpace, int, _Evaluations]] = {}
        """Replica, its number, and the evaluations it belongs to, by identity."""

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Submit `repeat` deep copies of each model in its place.

        Args:
            *models: frozen models.
        """
        for model in models:
            self.remember(model)
            replicas = [copy.deepcopy(model) for _ in range(self.repeat)]
            evaluations = _Evaluations(model, [[] for _ in replicas])
            with self._lock:
                for number, replica in enumerate(replicas):
                    self._replicas[id(replica)] = (replica, number, evaluations)
            self.engine.submit_models(*replicas)

    def list_models(self, status: ModelStatus | None = None) -> Iterable[ExecutableModelSpace]:
        """Return the models submitted to this middleware; without a history, the running ones.

        Args:
            status: only those of this status; None for all.

        Returns:
            The models, in the order of their submission.
        """
        if self._retains:
            return super().list_models(status)
        with self._lock:
            models = {id(one.original): one.original for _, _, one in self._replicas.values()}
        return [one for one in models.values() if status is None or one.status == status]

    def stop_models(self, *models: ExecutableModelSpace) -> None:
        """Stop all copies of models.

        Args:
            *models: running models.
        """
        stopped = {id(model) for model in models}
        with self._lock:
            replicas = [
                replica
                for replica, _, evaluations in self._replicas.values()
                if id(evaluations.original) in stopped
            ]
        self.engine.stop_models(*replicas)

    def receive_event(self, event: ModelEvent) -> None:
        """Collect the event of a copy; report means when all copies have a value.

        Args:
            event: the event.
        """
        made: list[ModelEvent] = []
        with self._lock:
            found = self._replicas.get(id(event.model))
            if found is not None:
                made = self._collected(event, found[1], found[2])
        if found is None:
            super().receive_event(event)
        for one in made:
            self.dispatch_model_event(one)

    def _collected(
        self, event: ModelEvent, number: int, evaluations: _Evaluations
    ) -> list[ModelEvent]:
        """Add an event of a copy; return the events of the model that follow from it."""
        model = evaluations.original
        match event:
            case IntermediateMetricEvent(metric=metric):
                evaluations.intermediates[number].append(_number(metric))
                step = evaluations.reported
                if any(len(one) <= step for one in evaluations.intermediates):
                    return []
                evaluations.reported += 1
                mean = fmean(one[step] for one in evaluations.intermediates)
                return [IntermediateMetricEvent(model, mean)]
            case FinalMetricEvent(metric=metric):
                evaluations.finals.append(_number(metric))
            case TrainingEndEvent(status=status):
                self._replicas.pop(id(event.model))
                evaluations.statuses.append(status)
                if len(evaluations.statuses) == self.repeat:
                    return _end_of(evaluations)
        return []


def _end_of(evaluations: _Evaluations) -> list[ModelEvent]:
    model = evaluations.original
    failed = [one for one in evaluations.statuses if one is not ModelStatus.Trained]
    end = TrainingEndEvent(model, failed[0] if failed else ModelStatus.Trained)
    if not evaluations.finals:
        return [end]
    return [FinalMetricEvent(model, fmean(evaluations.finals)), end]


def _number(metric: object) -> float:
    """Return the number of a metric, of a dict its `default`; raise ValueError without one."""
    metrics = Metrics(strict=True)
    metrics.add_intermediate(metric)
    return float(metrics.intermediates[0])
