"""Events by which engines report the progress of models, and the change that each makes.

An event reaches the callbacks of an engine in the order of their registration, then those of the
middleware above it. At the end its default action changes the model, unless a callback has stopped
the event or prevented the action. Models change by events only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus

_logger = logging.getLogger(__name__)


class ModelEventType(StrEnum):
    """Type of a model event: intermediate metric, final metric, end of the training.

    Examples:
        >>> from nni.nas.execution import ModelEventType
        >>> ModelEventType("training_end").name
        'TrainingEnd'
    """

    IntermediateMetric = "intermediate_metric"
    """The model reported an intermediate metric."""

    FinalMetric = "final_metric"
    """The model reported its final metric."""

    TrainingEnd = "training_end"
    """The evaluation of the model ended, with any status."""


@dataclass(eq=False, slots=True)
class ModelEvent:
    """Base of events of one model, whose callbacks may stop propagation or the default action.

    Callbacks compare models by identity.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.execution import FinalMetricEvent
        >>> from nni.nas.space.raw import RawFormatModelSpace
        >>> model = RawFormatModelSpace(Categorical([1, 2], label="a")).freeze({"a": 1})
        >>> event = FinalMetricEvent(model, 0.9)
        >>> event.stop_propagation()
        >>> event.propagation_stopped, event.default_prevented
        (True, True)
    """

    model: ExecutableModelSpace
    """The model that the event is about."""

    _stopped: bool = field(default=False, init=False)
    _default_prevented: bool = field(default=False, init=False)

    @property
    def propagation_stopped(self) -> bool:
        """Whether `stop_propagation` was called."""
        return self._stopped

    @property
    def default_prevented(self) -> bool:
        """Whether the default action is skipped: it was prevented, or propagation stopped."""
        return self._stopped or self._default_prevented

    def stop_propagation(self) -> None:
        """Skip the remaining callbacks and the default action."""
        self._stopped = True

    def prevent_default(self) -> None:
        """Skip the default action; the remaining callbacks are still called."""
        self._default_prevented = True


@dataclass(eq=False, slots=True)
class IntermediateMetricEvent(ModelEvent):
    """Intermediate metric of a model; the default action appends it to the model's metrics.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.execution import IntermediateMetricEvent
        >>> from nni.nas.space.raw import RawFormatModelSpace
        >>> model = RawFormatModelSpace(Categorical([1, 2], label="a")).freeze({"a": 1})
        >>> IntermediateMetricEvent(model, 0.5).metric
        0.5
    """

    metric: Any
    """What the evaluator reported: a number, or a dict with `default`."""


@dataclass(eq=False, slots=True)
class FinalMetricEvent(ModelEvent):
    """Final metric of a model; the default action sets it.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.execution import FinalMetricEvent
        >>> from nni.nas.space.raw import RawFormatModelSpace
        >>> model = RawFormatModelSpace(Categorical([1, 2], label="a")).freeze({"a": 1})
        >>> FinalMetricEvent(model, 0.9).metric
        0.9
    """

    metric: Any
    """What the evaluator reported: a number, or a dict with `default`."""


@dataclass(eq=False, slots=True)
class TrainingEndEvent(ModelEvent):
    """End of the evaluation of a model; the default action sets the status.

    Examples:
        >>> from nni.mutable import Categorical
        >>> from nni.nas.execution import ModelEvent, TrainingEndEvent
        >>> from nni.nas.space.raw import RawFormatModelSpace
        >>> model = RawFormatModelSpace(Categorical([1, 2], label="a")).freeze({"a": 1})
        >>> isinstance(TrainingEndEvent(model, "trained"), ModelEvent)
        True
    """

    status: ModelStatus
    """Status of the model from now on."""


EventCallback: TypeAlias = Callable[[Any], object]
"""Function of one event; it may be called from any thread."""

_CLASSES: Final[dict[ModelEventType, type[ModelEvent]]] = {
    ModelEventType.IntermediateMetric: IntermediateMetricEvent,
    ModelEventType.FinalMetric: FinalMetricEvent,
    ModelEventType.TrainingEnd: TrainingEndEvent,
}


def event_type_of(event: ModelEvent) -> ModelEventType:
    """Return the type of an event by its class; raise TypeError for an unknown class.

    Raises:
        TypeError: the event belongs to none of the three kinds.
    """
    match event:
        case IntermediateMetricEvent():
            return ModelEventType.IntermediateMetric
        case FinalMetricEvent():
            return ModelEventType.FinalMetric
        case TrainingEndEvent():
            return ModelEventType.TrainingEnd
    raise TypeError(
        "event must be an IntermediateMetricEvent, a FinalMetricEvent or a TrainingEndEvent; "
        f"got {event!r:.200}"
    )


def checked_event_type(event_type: ModelEventType | str) -> ModelEventType:
    """Convert a name to a type of events; raise ValueError if it is unknown.

    Raises:
        ValueError: there is none; the text lists those that exist.
    """
    try:
        return ModelEventType(event_type)
    except ValueError:
        known = ", ".join(repr(one.value) for one in ModelEventType)
        raise ValueError(f"event type must be one of {known}; got {event_type!r}") from None


def as_event(event: ModelEvent | ModelEventType | str, fields: dict[str, Any]) -> ModelEvent:
    """Return an event: the given one, or a new one of a kind with its fields.

    Raises:
        TypeError: fields are given beside an event, or do not fit the kind.
        ValueError: the kind is unknown.
    """
    if not isinstance(event, ModelEvent):
        return _CLASSES[checked_event_type(event)](**fields)
    if fields:
        raise TypeError(
            f"an event has its fields already, got {', '.join(sorted(fields))} beside it; "
            "give the event alone, or its type with the fields"
        )
    return event


def apply_default_action(event: ModelEvent) -> None:
    """Apply an event to its model: add or set the metric, or set the status."""
    match event:
        case IntermediateMetricEvent(model, metric=metric):
            model.metrics.add_intermediate(metric)
        case FinalMetricEvent(model, metric=metric):
            if model.metrics.final is not None:
                _logger.warning(
                    "a second final metric of a model, %r, replaces %r", metric, model.metrics.final
                )
            model.metrics.final = metric
        case TrainingEndEvent(model, status=status):
            model.status = status
