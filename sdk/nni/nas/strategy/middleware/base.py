"""Base of the middleware between a strategy and its engine."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from nni.nas.execution import FinalMetricEvent, Middleware, TrainingEndEvent
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus


class StrategyMiddleware(Middleware):
    """Engine between a strategy and another engine; a part of a `Chain`.

    A subclass overrides `submit_models` to change what goes down, and `receive_event` for what
    comes up. It changes models by `dispatch_model_event` only.

    Args:
        retain_history: whether `list_models` lists all models that were submitted here; otherwise
            it lists those of the engine below.

    Examples:
        Middleware that submits each model only while few were evaluated.

        >>> from nni.nas.strategy.middleware import StrategyMiddleware
        >>> class AtMost(StrategyMiddleware):
        ...     def __init__(self, limit):
        ...         super().__init__()
        ...         self.limit = limit
        ...     def budget_available(self):
        ...         return len(list(self.list_models())) < self.limit and super().budget_available()
        >>> AtMost(3).limit
        3
    """

    def __init__(self, retain_history: bool = True) -> None:  # noqa: FBT001, FBT002 - documented signature
        super().__init__()
        self._retains = retain_history
        self._history_lock = threading.Lock()
        self._history: dict[int, ExecutableModelSpace] = {}

    def remember(self, model: ExecutableModelSpace) -> None:
        """Add a model to the history, once, if the history is retained.

        Args:
            model: the model, before it is submitted.
        """
        if self._retains:
            with self._history_lock:
                self._history[id(model)] = model

    def list_models(self, status: ModelStatus | None = None) -> Iterable[ExecutableModelSpace]:
        """Return the models submitted to this middleware; without a history, to the engine below.

        Args:
            status: only those of this status; None for all.

        Returns:
            The models, in the order of their submission.
        """
        if not self._retains:
            return super().list_models(status)
        with self._history_lock:
            models = list(self._history.values())
        return [one for one in models if status is None or one.status == status]

    def end_model(
        self, model: ExecutableModelSpace, status: ModelStatus, metric: float | None = None
    ) -> None:
        """Dispatch the end of a model that is not evaluated, after a final metric if given.

        Args:
            model: the model.
            status: its status from now on.
            metric: its final metric; None for none.
        """
        if metric is not None:
            self.dispatch_model_event(FinalMetricEvent(model, metric))
        self.dispatch_model_event(TrainingEndEvent(model, status))

    def shutdown(self) -> None:
        """Raise RuntimeError: the owner of the engine shuts it down.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            f"{type(self).__name__} does not own its engine; shut down the engine itself"
        )
