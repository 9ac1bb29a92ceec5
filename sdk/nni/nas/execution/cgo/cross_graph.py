"""Middleware that trains several models in one trial: `CrossGraphOptimization`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any, Protocol

import nni
from nni.nas.evaluator.pytorch import Lightning
from nni.nas.execution.base import ExecutionEngine, Middleware
from nni.nas.execution.cgo.grouping import MergedMetrics, grouped, metrics_by_model
from nni.nas.execution.cgo.merging import can_share_inputs, merged_model
from nni.nas.execution.cgo.multi_model import MultiModelLightningModule, _MultiModelTrainer
from nni.nas.execution.events import (
    FinalMetricEvent,
    IntermediateMetricEvent,
    ModelEvent,
    TrainingEndEvent,
)
from nni.nas.space import ExecutableModelSpace, GraphModelSpace, ModelStatus

_logger = logging.getLogger(__name__)


class Timer(Protocol):
    """Timer that can be cancelled, as `threading.Timer`."""

    def cancel(self) -> None:
        """Cancel the timer."""
        ...


def start_timer(seconds: float, action: Callable[[], None]) -> Timer:
    """Start a daemon timer that calls a function once; return it, so that it can be cancelled.

    Args:
        seconds: time until the action.
        action: what is called then.

    Returns:
        The timer.
    """
    timer = threading.Timer(seconds, action)
    timer.daemon = True
    timer.start()
    return timer


class CrossGraphOptimization(Middleware):
    """Middleware that merges models which share their batches, and trains them in one trial.

    Models wait until as many are there as fit in a trial, or until the oldest has waited for
    `batch_waiting_time`. If a merged trial fails, each of its models is trained alone. Models that
    still wait when the budget of the engine ends, or its experiment, are interrupted. Models are
    in the graph format, and their evaluator is a `Lightning` with a `MultiModelLightningModule`
    and a `MultiModelTrainer`. A search cannot be resumed.

    Args:
        engine: engine that runs the trials; None if `set_engine` follows.
        max_concurrency_cgo: models of a trial at most.
        batch_waiting_time: seconds that a model waits for others.
        devices: devices of the engine; each model takes one.
        timer: function that starts a timer.

    Attributes:
        devices: devices of the engine.

    Raises:
        ValueError: a number is smaller than its least.

    Examples:
        >>> from nni.nas.execution import SequentialExecutionEngine
        >>> engine = CrossGraphOptimization(SequentialExecutionEngine(), max_concurrency_cgo=3)
        >>> engine.idle_worker_available()
        True
    """

    def __init__(
        self,
        engine: ExecutionEngine | None = None,
        *,
        max_concurrency_cgo: int,
        batch_waiting_time: float = 60,
        devices: int | None = None,
        timer: Callable[[float, Callable[[], None]], Timer] = start_timer,
    ) -> None:
        for name, value in (("max_concurrency_cgo", max_concurrency_cgo), ("devices", devices)):
            if value is not None and value < 1:
                raise ValueError(f"{name} must be >= 1, got {value}")
        if batch_waiting_time < 0:
            raise ValueError(f"batch_waiting_time must be >= 0, got {batch_waiting_time}")
        super().__init__(engine)
        self._limit = max_concurrency_cgo
        self._wait_s = batch_waiting_time
        self.devices = max_concurrency_cgo if devices is None else devices
        self._start_timer = timer
        self._timer: Timer | None = None
        self._lock = threading.Lock()  # of what follows
        self._submitted: list[GraphModelSpace] = []
        self._queue: list[GraphModelSpace] = []
        self._alone: list[GraphModelSpace] = []
        self._running: dict[int, tuple[ExecutableModelSpace, list[GraphModelSpace]]] = {}
        self._is_overdue = False

    @property
    def platform(self) -> Any:  # noqa: ANN401 - of any engine
        """Platform of the engine below; None if it has none."""
        return getattr(self.engine, "platform", None)

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        """Queue models; start trials of full groups, and a timer for the other models.

        Args:
            *models: frozen models in the graph format.

        Raises:
            TypeError: a model has another format, or its evaluator trains one model only; none is
                queued.
            RuntimeError: a model is not frozen, or was evaluated already; none is queued.
        """
        checked = [_checked(model) for model in models]
        for model in checked:
            model.status = ModelStatus.Training
        with self._lock:
            self._submitted.extend(checked)
            self._queue.extend(checked)
            if self._queue and self._timer is None:
                self._timer = self._start_timer(self._wait_s, self._stop_waiting)
        self._start_trials()

    def _stop_waiting(self) -> None:
        """Start trials of the queued models, although their groups are not full."""
        with self._lock:
            self._is_overdue = bool(self._queue)
        self._start_trials()

    def _start_trials(self) -> None:
        while True:
            # A closed engine refuses models, and its events are no place for that error.
            if not self.engine.budget_available():
                self._interrupt_waiting()
                return
            with self._lock:
                group = self._next_group()
                if not group:
                    return
                trial = group[0] if len(group) == 1 else _merged(group)
                trial.status = ModelStatus.Frozen
                self._running[id(trial)] = (trial, group)
            self.engine.submit_models(trial)

    def _interrupt_waiting(self) -> None:
        with self._lock:
            waiting = [*self._alone, *self._queue]
            self._alone, self._queue = [], []
            self._end_waiting_time()
        for model in waiting:
            self.dispatch_model_event(TrainingEndEvent(model, ModelStatus.Interrupted))

    def _next_group(self) -> list[GraphModelSpace]:
        """Dequeue one trial's models: a retry alone, or a full or overdue group; needs the lock."""
        free = self.devices - sum(len(group) for _, group in self._running.values())
        size = min(free, self._limit)
        if size < 1:
            return []
        if self._alone:
            return [self._alone.pop(0)]
        if not self._queue or (len(self._queue) < size and not self._is_overdue):
            return []
        group = grouped(self._queue[:size], size, _fit)[0]
        self._queue = [one for one in self._queue if not any(one is taken for taken in group)]
        if not self._queue:
            self._end_waiting_time()
        return group

    def _end_waiting_time(self) -> None:
        """Cancel the queue's timer and its overdue mark; the caller holds the lock."""
        self._is_overdue = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def receive_event(self, event: ModelEvent) -> None:
        """Pass a trial's event to its models, or queue them alone if it failed; start next trials.

        Args:
            event: event of the engine below.

        Raises:
            ValueError: a merged trial reported a list of another length.
        """
        with self._lock:
            known = self._running.get(id(event.model))
        group = [] if known is None else known[1]
        if len(group) > 1:
            self._receive_merged(event, group)
        else:
            self.call_callbacks(event)
        if isinstance(event, TrainingEndEvent):
            with self._lock:
                self._running.pop(id(event.model), None)
            self._start_trials()

    def _receive_merged(self, event: ModelEvent, group: list[GraphModelSpace]) -> None:
        event.stop_propagation()
        match event:
            case IntermediateMetricEvent(metric=metric):
                for model, one in zip(group, metrics_by_model(metric, len(group)), strict=True):
                    self.dispatch_model_event(IntermediateMetricEvent(model, one))
            case FinalMetricEvent(metric=metric):
                for model, one in zip(group, metrics_by_model(metric, len(group)), strict=True):
                    self.dispatch_model_event(FinalMetricEvent(model, one))
            case TrainingEndEvent(status=ModelStatus.Failed):
                _logger.warning("a trial of %d models failed; each is trained alone", len(group))
                for model in group:
                    model.metrics.clear()
                with self._lock:
                    self._alone.extend(group)
            case TrainingEndEvent(status=status):
                for model in group:
                    self.dispatch_model_event(TrainingEndEvent(model, status))

    def list_models(self, status: ModelStatus | None = None) -> list[ExecutableModelSpace]:
        """Return the submitted models, of one status if given, in order of submission.

        Args:
            status: only those of this status; None for all.

        Returns:
            The models, without merged ones.
        """
        with self._lock:
            models = list(self._submitted)
        return [one for one in models if status is None or one.status == status]

    def wait_models(self, *models: ExecutableModelSpace) -> None:
        """Train what is queued; wait until the given models, else all, are completed.

        Args:
            *models: the models; none for all that were submitted.

        Raises:
            RuntimeError: the engine below has failed.
        """
        self._stop_waiting()
        wanted = models or tuple(self.list_models())
        if wanted:  # of none, the engine below would wait for its trials
            self.engine.wait_models(*wanted)

    def can_stop_models(self) -> bool:
        """Return false: a model cannot be stopped without those that it is trained with.

        Returns:
            False.
        """
        return False

    def stop_models(self, *models: ExecutableModelSpace) -> None:
        """Raise RuntimeError: models that are trained together cannot be stopped.

        Args:
            *models: running models.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(f"models that are trained together cannot be stopped, got {len(models)}")

    def idle_worker_available(self) -> bool:
        """Return whether a device is free for one more model.

        Returns:
            True if fewer models are queued and trained than there are devices.
        """
        with self._lock:
            used = sum(len(group) for _, group in self._running.values())
            return used + len(self._queue) + len(self._alone) < self.devices

    def shutdown(self) -> None:
        """Cancel the timer, and shut the engine below down."""
        with self._lock:
            self._end_waiting_time()
        super().shutdown()


def _checked(model: ExecutableModelSpace) -> GraphModelSpace:
    """Return a model unchanged; raise unless it is a frozen graph that can be merged."""
    if not isinstance(model, GraphModelSpace):
        raise TypeError(
            f"cross-graph optimisation needs models in the graph format, got "
            f"{type(model).__name__}; set config.model_format = 'graph'"
        )
    if model.status not in {ModelStatus.Frozen, ModelStatus.Retrying}:
        raise RuntimeError(
            f"a submitted model must be frozen, its status is {model.status}; "
            "call freeze(sample) of the space"
        )
    evaluator: Any = model.evaluator
    if (
        not isinstance(evaluator, Lightning)
        or not isinstance(evaluator.module, MultiModelLightningModule)
        or not isinstance(evaluator.trainer, _MultiModelTrainer)
    ):
        raise TypeError(
            "cross-graph optimisation needs a Lightning evaluator of a MultiModelLightningModule "
            f"and a MultiModelTrainer, got {type(evaluator).__name__}"
        )
    return model


def _merged(group: list[GraphModelSpace]) -> GraphModelSpace:
    trial = merged_model(group)
    trial.metrics = MergedMetrics(models=group)
    return trial


def _fit(one: GraphModelSpace, other: GraphModelSpace) -> bool:
    """Return whether two models can be trained together: on the same batches, in the same way."""
    return can_share_inputs(one, other) and (
        one.evaluator is other.evaluator or _text(one) == _text(other)
    )


def _text(model: GraphModelSpace) -> str:
    return nni.dump(model.evaluator, pickle_size_limit=0)
