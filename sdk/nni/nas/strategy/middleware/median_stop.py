"""Middleware that stops models which are worse than the median."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from statistics import median
from typing import Any, Final

from nni.nas.execution import (
    ExecutionEngine,
    FinalMetricEvent,
    IntermediateMetricEvent,
    ModelEvent,
    TrainingEndEvent,
)
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware.base import StrategyMiddleware

_FEWEST: Final = 3
"""Other models with a metric at the step, below which a median says little."""


class MedianStop(StrategyMiddleware):
    """Middleware that stops a model whose metric is below the median of the others at its step.

    Its last intermediate metric becomes the final one, so that strategies learn from it; its status
    is interrupted. Experimental: the engine must be able to stop models.

    Examples:
        >>> from nni.nas.strategy import Random
        >>> from nni.nas.strategy.middleware import Chain, MedianStop
        >>> strategy = Chain(Random(), MedianStop())
        >>> type(strategy[1]).__name__
        'MedianStop'
    """

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._curves: dict[int, tuple[ExecutableModelSpace, list[float]]] = {}
        """Intermediate metrics of all models, by identity."""
        self._earlier: list[list[float]] = []
        """Intermediate metrics of models of the search that this one resumes."""
        self._stopped: set[int] = set()
        self._ended: set[int] = set()
        """Models whose curve is complete; their status is set after the callbacks of the end."""

    def set_engine(self, engine: ExecutionEngine) -> None:
        """Set the engine below; raise ValueError unless it can stop models.

        Args:
            engine: an engine that can stop models.

        Raises:
            ValueError: it cannot.
        """
        if not engine.can_stop_models():
            raise ValueError(
                f"MedianStop needs an engine that can stop models, {type(engine).__name__} cannot; "
                "use the sequential engine"
            )
        super().set_engine(engine)

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Add models to the history, and submit them to the engine below.

        Args:
            *models: frozen models.
        """
        for model in models:
            self.remember(model)
            with self._lock:
                self._ended.discard(id(model))  # it may be evaluated again
        self.engine.submit_models(*models)

    def receive_event(self, event: ModelEvent) -> None:
        """Pass events up; stop models below the median, give stopped ones a final metric.

        Args:
            event: the event.
        """
        match event:
            case IntermediateMetricEvent(model, metric=metric):
                super().receive_event(event)
                if not event.propagation_stopped and self._is_below_median(model, metric):
                    self.engine.stop_models(model)
                return
            case TrainingEndEvent(model, status=status):
                if status is ModelStatus.Interrupted:
                    self._set_final_metric(model)
                if status is not ModelStatus.Interrupted or model.metrics.final is not None:
                    with self._lock:
                        self._ended.add(id(model))
        super().receive_event(event)

    def state_dict(self) -> dict[str, Any]:
        """Return the intermediate metrics of models that have ended.

        Returns:
            `curves`: a list for each model.
        """
        with self._lock:
            ended = [curve for key, (_, curve) in self._curves.items() if key in self._ended]
            return {"curves": [list(curve) for curve in (*self._earlier, *ended)]}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Restore the intermediate metrics with which models are compared.

        Args:
            state_dict: what `state_dict` returned; empty of earlier versions.
        """
        with self._lock:
            self._earlier = [list(curve) for curve in state_dict.get("curves", ())]

    def _is_below_median(self, model: ExecutableModelSpace, metric: object) -> bool:
        value = float(metric["default"] if isinstance(metric, dict) else metric)  # type: ignore[arg-type]  # metrics are numbers, or dicts of them
        with self._lock:
            step = len(model.metrics.intermediates)  # a model that is evaluated again starts at 0
            _, curve = self._curves.setdefault(id(model), (model, []))
            curve[step:] = [value]
            current = [one for key, (_, one) in self._curves.items() if key != id(model)]
            others = [one[step] for one in (*self._earlier, *current) if len(one) > step]
            below = len(others) >= _FEWEST and value < median(others)
            if below:
                self._stopped.add(id(model))
        return below

    def _set_final_metric(self, model: ExecutableModelSpace) -> None:
        with self._lock:
            stopped = id(model) in self._stopped
            self._stopped.discard(id(model))
        if stopped and model.metrics.final is None and model.metrics.intermediates:
            self.dispatch_model_event(FinalMetricEvent(model, model.metrics.intermediates[-1]))
