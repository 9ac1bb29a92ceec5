import logging

import pytest

from nni.nas.execution.events import (
    FinalMetricEvent,
    IntermediateMetricEvent,
    ModelEvent,
    ModelEventType,
    TrainingEndEvent,
    apply_default_action,
    as_event,
    checked_event_type,
    event_type_of,
)
from nni.nas.space.status import ModelStatus
from tests.support.architecture_search import frozen


def test_intermediate_metric_is_appended() -> None:
    model = frozen()

    apply_default_action(IntermediateMetricEvent(model, 1))
    apply_default_action(IntermediateMetricEvent(model, {"default": 2}))

    assert model.metrics.intermediates == [1.0, 2.0]


def test_second_final_metric_replaces_the_first_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    model = frozen()

    apply_default_action(FinalMetricEvent(model, 1))
    with caplog.at_level(logging.WARNING):
        apply_default_action(FinalMetricEvent(model, 2))

    assert model.metric == 2.0
    assert "a second final metric of a model, 2, replaces 1.0" in caplog.text


def test_training_end_sets_the_status() -> None:
    model = frozen()

    apply_default_action(TrainingEndEvent(model, ModelStatus.Failed))

    assert model.status is ModelStatus.Failed


def test_events_are_made_of_a_type_and_its_fields() -> None:
    model = frozen()

    event = as_event("final_metric", {"model": model, "metric": 3})

    assert isinstance(event, FinalMetricEvent)
    assert (event.model, event.metric) == (model, 3)
    assert event_type_of(event) is ModelEventType.FinalMetric


def test_fields_beside_an_event_are_refused() -> None:
    event = TrainingEndEvent(frozen(), ModelStatus.Trained)

    with pytest.raises(TypeError, match="got status beside it"):
        as_event(event, {"status": ModelStatus.Failed})


def test_unknown_types_are_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="'intermediate_metric', 'final_metric', 'training_end'"):
        checked_event_type("end")


def test_bare_events_have_no_type() -> None:
    with pytest.raises(TypeError, match="event must be an IntermediateMetricEvent"):
        event_type_of(ModelEvent(frozen()))


def test_stopping_an_event_prevents_its_default_action() -> None:
    stopped, prevented = (TrainingEndEvent(frozen(), ModelStatus.Trained) for _ in range(2))

    stopped.stop_propagation()
    prevented.prevent_default()

    assert (stopped.propagation_stopped, stopped.default_prevented) == (True, True)
    assert (prevented.propagation_stopped, prevented.default_prevented) == (False, True)
