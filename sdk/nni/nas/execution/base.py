"""Contract of execution engines, which evaluate models, and of middleware above an engine.

Engines report by events, possibly from another thread than that of the caller, so callbacks lock
what they share. No engine holds a lock while it calls a callback, and a callback may submit models.
An engine is disposable: after `shutdown` it is never used again.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from nni.nas.execution.construction import Reconstructible
from nni.nas.execution.events import (
    EventCallback,
    ModelEvent,
    ModelEventType,
    apply_default_action,
    as_event,
    checked_event_type,
    event_type_of,
)
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus


@dataclass(frozen=True, slots=True)
class WorkerInfo:
    """Host name and GPU index of the place where a model is evaluated.

    Examples:
        >>> from nni.nas.execution import WorkerInfo
        >>> WorkerInfo("node-1", 0).gpu_index
        0
    """

    host: str
    """Name of the machine."""

    gpu_index: int
    """Index of the GPU on the machine; -1 for none."""


class ExecutionEngine(ABC):
    """Base of engines that evaluate models: abstract submission, event callbacks, and waiting.

    A subclass implements the abstract methods, reports by `dispatch_model_event`, and calls
    `notify_change` when a worker becomes idle or the budget ends without an event.

    Examples:
        An engine that evaluates nothing: each model is at once trained.

        >>> from nni.nas.execution import ExecutionEngine, ModelEventType
        >>> from nni.nas.space import ModelStatus
        >>> class Instant(ExecutionEngine):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.models = []
        ...     def submit_models(self, *models):
        ...         for model in models:
        ...             self.models.append(model)
        ...             self.dispatch_model_event(
        ...                 ModelEventType.TrainingEnd, model=model, status=ModelStatus.Trained
        ...             )
        ...     def list_models(self, status=None):
        ...         return [one for one in self.models if status in (None, one.status)]
        ...     def idle_worker_available(self):
        ...         return True
        ...     def budget_available(self):
        ...         return len(self.models) < 10
        >>> Instant().budget_available()
        True
    """

    def __init__(self) -> None:
        self._callbacks: dict[ModelEventType, list[EventCallback]] = {
            event_type: [] for event_type in ModelEventType
        }
        self._changed = threading.Condition()
        self._changes = 0

    # Models

    @abstractmethod
    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Start the evaluation of frozen models; it may end before the call returns.

        Args:
            *models: frozen models that were not evaluated before.
        """

    @abstractmethod
    def list_models(self, status: ModelStatus | None = None) -> Iterable[ExecutableModelSpace]:
        """Return the models that were submitted, in the order of their submission.

        Args:
            status: only those of this status; None for all.

        Returns:
            The models, the same objects that were submitted where they still exist.
        """

    def wait_models(self, *models: ExecutableModelSpace) -> None:
        """Wait until the given models, else all that were submitted, are completed.

        Args:
            *models: the models; none for all that were submitted.
        """
        self.wait_until(lambda: all(one.status.completed() for one in models or self.list_models()))

    def can_stop_models(self) -> bool:
        """Return whether `stop_models` ends running models; by default False.

        Returns:
            True if it does.
        """
        return False

    def stop_models(self, *models: ExecutableModelSpace) -> None:
        """Stop running models, which end as interrupted; by default raise RuntimeError.

        Args:
            *models: running models; others are ignored.

        Raises:
            RuntimeError: this engine cannot stop models, see `can_stop_models`.
        """
        del models
        raise RuntimeError(f"{type(self).__name__} cannot stop models")

    # Resources

    @abstractmethod
    def idle_worker_available(self) -> bool:
        """Return whether a model that is submitted now would start at once.

        Returns:
            True if a worker is idle.
        """

    @abstractmethod
    def budget_available(self) -> bool:
        """Return whether more models may be submitted.

        Returns:
            False once the limit on models or time is reached.
        """

    def wait_until(self, condition: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Wait until a condition holds or the time is up; return whether it holds.

        Args:
            condition: function of the state of engine or models; it is called without a lock.
            timeout_s: seconds to wait at most; None for no limit.

        Returns:
            Whether the condition holds; false only after the time-out.
        """
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            with self._changed:
                seen = self._changes
            if condition():
                return True
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            with self._changed:
                if not self._changed.wait_for(lambda: self._changes != seen, left):  # noqa: B023 - called within this turn only
                    return False

    def notify_change(self) -> None:
        """Wake all that wait in `wait_until`, so that they check their condition again."""
        with self._changed:
            self._changes += 1
            self._changed.notify_all()

    # Events

    def register_model_event_callback(
        self, event_type: ModelEventType | str, callback: EventCallback
    ) -> None:
        """Call a function at each event of a kind, after those that are registered already.

        Args:
            event_type: kind of event.
            callback: function of the event; it may be called from any thread.
        """
        self._callbacks[checked_event_type(event_type)].append(callback)

    def unregister_model_event_callback(
        self, event_type: ModelEventType | str, callback: EventCallback
    ) -> None:
        """Stop calling a function at events of a type; raise ValueError if it was not registered.

        Args:
            event_type: kind of event.
            callback: the function that was registered.

        Raises:
            ValueError: the function is not registered for this kind.
        """
        callbacks = self._callbacks[checked_event_type(event_type)]
        if callback not in callbacks:
            raise ValueError(f"callback {callback!r} is not registered for {event_type!r} events")
        callbacks.remove(callback)

    def dispatch_model_event(
        self, event: ModelEvent | ModelEventType | str, **fields: object
    ) -> None:
        """Call an event's callbacks, apply its default action unless prevented, wake waiters.

        Args:
            event: an event, or the type of one.
            **fields: fields of the new event, if a type is given: `model`, and `metric` or
                `status`.
        """
        made = as_event(event, fields)
        self.call_callbacks(made)
        if not made.default_prevented:
            apply_default_action(made)
        self.notify_change()

    def call_callbacks(self, event: ModelEvent) -> None:
        """Call an event's callbacks in the order of registration, until one stops the event.

        Args:
            event: the event; after `stop_propagation` no further callback is called.
        """
        for callback in tuple(self._callbacks[event_type_of(event)]):
            if event.propagation_stopped:
                return
            callback(event)

    # Begin, end and state

    def start(self) -> None:  # noqa: B027 - optional
        """Acquire resources, after a state was loaded; optional to call; by default do nothing."""

    def restore_models(self, models: Iterable[ExecutableModelSpace]) -> None:  # noqa: B027 - optional
        """Exclude models that an earlier process counted from events; by default do nothing.

        Args:
            models: completed models, after `load_state_dict`.
        """

    def shutdown(self) -> None:  # noqa: B027 - optional
        """Release all resources; the engine is unusable afterwards; by default do nothing."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state that a later engine needs to continue; by default empty.

        Returns:
            Plain values only; only `load_state_dict` reads them.
        """
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:  # noqa: B027 - optional
        """Restore the state of an earlier engine; by default do nothing.

        Args:
            state_dict: what `state_dict` of an earlier engine returned.
        """


class Middleware(Reconstructible, ExecutionEngine):
    """Engine that wraps another engine, and passes models down and events up.

    Args:
        engine: the engine below; None if `set_engine` follows.

    Examples:
        >>> from nni.nas.execution import Middleware, SequentialExecutionEngine
        >>> engine = Middleware(SequentialExecutionEngine(max_model_count=3))
        >>> engine.budget_available()
        True
        >>> Middleware().budget_available()
        Traceback (most recent call last):
        RuntimeError: Middleware has no engine; call set_engine first
    """

    def __init__(self, engine: ExecutionEngine | None = None) -> None:
        super().__init__()
        self._engine: ExecutionEngine | None = None
        if engine is not None:
            self.set_engine(engine)

    @property
    def engine(self) -> ExecutionEngine:
        """The engine below; raises RuntimeError if none is set.

        Raises:
            RuntimeError: none was set.
        """
        if self._engine is None:
            raise RuntimeError(f"{type(self).__name__} has no engine; call set_engine first")
        return self._engine

    def set_engine(self, engine: ExecutionEngine) -> None:
        """Set the engine below, once, and receive its events.

        Args:
            engine: the engine.

        Raises:
            RuntimeError: an engine was set before.
        """
        if self._engine is not None:
            raise RuntimeError(f"{type(self).__name__} has an engine already; build a new one")
        self._engine = engine
        for event_type in ModelEventType:
            engine.register_model_event_callback(event_type, self.receive_event)

    def receive_event(self, event: ModelEvent) -> None:
        """Receive an event of the engine below; by default call the own callbacks with it.

        Args:
            event: the event; the engine below applies its default action afterwards.
        """
        self.call_callbacks(event)

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Submit models to the engine below.

        Args:
            *models: frozen models.
        """
        self.engine.submit_models(*models)

    def list_models(self, status: ModelStatus | None = None) -> Iterable[ExecutableModelSpace]:
        """Return the models of the engine below.

        Args:
            status: only those of this status; None for all.

        Returns:
            The models.
        """
        return self.engine.list_models(status)

    def can_stop_models(self) -> bool:
        """Return whether the engine below can stop models.

        Returns:
            True if it can.
        """
        return self.engine.can_stop_models()

    def stop_models(self, *models: ExecutableModelSpace) -> None:
        """Stop running models of the engine below.

        Args:
            *models: running models.
        """
        self.engine.stop_models(*models)

    def idle_worker_available(self) -> bool:
        """Return whether the engine below has an idle worker.

        Returns:
            True if a worker is idle.
        """
        return self.engine.idle_worker_available()

    def budget_available(self) -> bool:
        """Return whether the engine below may get more models.

        Returns:
            False once the limit on models or time is reached.
        """
        return self.engine.budget_available()

    def wait_until(self, condition: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Wait, up to `timeout_s`, for a condition on the engine below; return whether it holds.

        Args:
            condition: function of the state of engine or models.
            timeout_s: seconds to wait at most; None for no limit.

        Returns:
            Whether the condition holds.
        """
        return self.engine.wait_until(condition, timeout_s)

    def notify_change(self) -> None:
        """Wake all that wait on any engine of the stack."""
        self.engine.notify_change()

    def shutdown(self) -> None:
        """Shut the engine below down."""
        self.engine.shutdown()
