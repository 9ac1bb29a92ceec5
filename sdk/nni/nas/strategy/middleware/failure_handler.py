"""Middleware that gives failed models a metric or evaluates them again."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from typing import Final

from nni.nas.execution import FinalMetricEvent, ModelEvent, TrainingEndEvent
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware.base import StrategyMiddleware

_logger = logging.getLogger(__name__)

_FAILURES: Final = (ModelStatus.Failed,)


class FailureHandler(StrategyMiddleware):
    """Middleware that evaluates failed models again, or gives them a fixed metric.

    Args:
        metric: final metric of a failed model; its status stays.
        retry_patience: how often a failed model is evaluated again, while the budget lasts.
        failure_types: statuses that count as failures.
        retain_history: whether `list_models` lists all models that were submitted here.

    Raises:
        ValueError: not exactly one of `metric` and `retry_patience` is given, or
            `retry_patience` is not positive.

    Examples:
        >>> from nni.nas.strategy import Random
        >>> from nni.nas.strategy.middleware import Chain, FailureHandler
        >>> strategy = Chain(Random(), FailureHandler(retry_patience=2))
        >>> type(strategy[1]).__name__
        'FailureHandler'
    """

    def __init__(
        self,
        *,
        metric: float | None = None,
        retry_patience: int | None = None,
        failure_types: Sequence[ModelStatus] = _FAILURES,
        retain_history: bool = True,
    ) -> None:
        super().__init__(retain_history)
        if (metric is None) == (retry_patience is None):
            raise ValueError(
                "exactly one of metric and retry_patience must be given, "
                f"got {metric!r} and {retry_patience!r}"
            )
        if retry_patience is not None and retry_patience < 1:
            raise ValueError(f"retry_patience must be >= 1, got {retry_patience}")
        self.metric = metric
        self.retry_patience = retry_patience
        self.failure_types = tuple(failure_types)
        self._lock = threading.Lock()
        self._retries: dict[int, int] = {}
        """Retries by the identity of the model, while it runs."""

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Add models to the history, and submit them to the engine below.

        Args:
            *models: frozen models.
        """
        for model in models:
            self.remember(model)
        self.engine.submit_models(*models)

    def receive_event(self, event: ModelEvent) -> None:
        """Retry a failed model and stop the event, or set its metric; pass other events up.

        Args:
            event: the event.
        """
        match event:
            case TrainingEndEvent(model, status=status) if status in self.failure_types:
                if self._retry(event):
                    return
                if self.metric is not None:
                    self.dispatch_model_event(FinalMetricEvent(model, self.metric))
        super().receive_event(event)

    def _retry(self, event: TrainingEndEvent) -> bool:
        """Submit a failed model again if retries and budget are left; return whether it was."""
        model = event.model
        with self._lock:
            done = self._retries.pop(id(model), 0)
            allowed = self.retry_patience is not None and done < self.retry_patience
            if allowed and self.engine.budget_available():
                self._retries[id(model)] = done + 1
            else:
                return False
        _logger.info("a failed model is evaluated again, retry %d", done + 1)
        event.stop_propagation()
        model.status = ModelStatus.Retrying
        model.metrics.clear()
        self.engine.submit_models(model)
        return True
