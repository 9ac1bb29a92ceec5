"""Models that a strategy has submitted and that have not ended, with their samples."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

from nni.nas.execution import ExecutionEngine, ModelEventType, TrainingEndEvent
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus

T = TypeVar("T")


class OpenModels(Generic[T]):
    """Table of running models with a value of the strategy for each; safe to use from threads.

    Models are compared by identity. The table holds them, so that none is collected before its end.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.space import RawFormatModelSpace
        >>> from nni.nas.strategy.utils import OpenModels
        >>> models = OpenModels()
        >>> space = RawFormatModelSpace(Categorical([1, 2], label="a"))
        >>> models.add(space.freeze({"a": 1}), "value of the strategy")
        >>> models.values()
        ['value of the strategy']
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._models: dict[int, tuple[ExecutableModelSpace, T]] = {}

    def __len__(self) -> int:
        """Return the number of running models."""
        with self._lock:
            return len(self._models)

    def add(self, model: ExecutableModelSpace, value: T) -> None:
        """Add a model, before it is submitted.

        Args:
            model: the model.
            value: what `end` returns for it.
        """
        with self._lock:
            self._models[id(model)] = (model, value)

    def end(self, event: TrainingEndEvent) -> T | None:
        """Remove an ended model, return its value; None if unknown, or interrupted, which stays.

        A model that was interrupted without a metric stays: its evaluation is still to be done.

        Args:
            event: end of any model.

        Returns:
            The value of the model.
        """
        model = event.model
        if event.status is ModelStatus.Interrupted and model.metric is None:
            return None
        with self._lock:
            _, value = self._models.pop(id(model), (None, None))
        return value

    def values(self) -> list[T]:
        """Return the values of all running models.

        Returns:
            The values, in the order of submission.
        """
        with self._lock:
            return [value for _, value in self._models.values()]

    def forget_ended(self, engine: ExecutionEngine) -> None:
        """Remove each model of an engine from the table when it ends.

        Args:
            engine: engine whose events are followed.
        """
        engine.register_model_event_callback(ModelEventType.TrainingEnd, self.end)
