import threading
from collections.abc import Callable

import pytest

from nni.nas.execution import (
    ExecutionEngine,
    Middleware,
    ModelEvent,
    ModelEventType,
    TrainingEndEvent,
    WorkerInfo,
)
from nni.nas.space.status import ModelStatus
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import frozen


def engine() -> SimulatedEngine:
    return SimulatedEngine(lambda sample: float(sample["a"]))


class ThreadedEngine(SimulatedEngine):
    """Engine whose waiting is that of the base class, not that of the simulation."""

    wait_until = ExecutionEngine.wait_until

    def __init__(self) -> None:
        super().__init__(lambda _sample: 1.0)


def status_recorder(
    name: str, seen: list[tuple[str, ModelStatus]]
) -> Callable[[TrainingEndEvent], None]:
    return lambda event: seen.append((name, event.model.status))


@pytest.mark.claim("nas", 91)
def test_stopped_event_skips_later_callbacks_and_the_default_action() -> None:
    tested, model = engine(), frozen()
    called: list[ModelEvent] = []
    tested.register_model_event_callback("training_end", lambda event: event.stop_propagation())
    tested.register_model_event_callback("training_end", called.append)

    tested.dispatch_model_event("training_end", model=model, status=ModelStatus.Failed)

    assert (model.status, called) == (ModelStatus.Frozen, [])


@pytest.mark.claim("nas", 91)
def test_prevented_default_action_still_notifies_later_callbacks() -> None:
    tested, model = engine(), frozen()
    called: list[ModelEvent] = []
    tested.register_model_event_callback("training_end", lambda event: event.prevent_default())
    tested.register_model_event_callback("training_end", called.append)

    tested.dispatch_model_event("training_end", model=model, status=ModelStatus.Failed)

    assert (model.status, len(called)) == (ModelStatus.Frozen, 1)


def test_callbacks_run_in_the_order_of_registration_before_the_default_action() -> None:
    tested, model = engine(), frozen()
    seen: list[tuple[str, ModelStatus]] = []
    for name in ("first", "second"):
        tested.register_model_event_callback(
            ModelEventType.TrainingEnd, status_recorder(name, seen)
        )

    tested.dispatch_model_event(TrainingEndEvent(model, ModelStatus.Trained))

    assert seen == [("first", ModelStatus.Frozen), ("second", ModelStatus.Frozen)]
    assert model.status is ModelStatus.Trained


def test_unregistered_callbacks_are_not_called() -> None:
    tested = engine()
    called: list[ModelEvent] = []
    tested.register_model_event_callback("training_end", called.append)

    tested.unregister_model_event_callback("training_end", called.append)
    tested.dispatch_model_event(TrainingEndEvent(frozen(), ModelStatus.Trained))

    assert called == []
    with pytest.raises(ValueError, match="is not registered for 'training_end' events"):
        tested.unregister_model_event_callback("training_end", called.append)


def test_middleware_without_an_engine_refuses_its_use() -> None:
    with pytest.raises(RuntimeError, match="Middleware has no engine; call set_engine first"):
        Middleware().submit_models(frozen())


def test_middleware_has_one_engine() -> None:
    tested = Middleware(engine())

    with pytest.raises(RuntimeError, match="has an engine already"):
        tested.set_engine(engine())


def test_events_go_up_and_the_default_action_runs_once() -> None:
    below = engine()
    tested, model, seen = Middleware(Middleware(below)), frozen(3), []
    tested.register_model_event_callback("final_metric", lambda event: seen.append(event.metric))

    tested.submit_models(model)

    assert (seen, model.metric, model.status) == ([3.0], 3.0, ModelStatus.Trained)
    assert tested.list_models() == [model]
    assert tested.can_stop_models()
    assert tested.budget_available()
    assert tested.idle_worker_available()


def test_events_of_middleware_do_not_reach_those_below() -> None:
    below = Middleware(engine())
    above = Middleware(below)
    seen: list[ModelEvent] = []
    below.register_model_event_callback("training_end", seen.append)

    above.dispatch_model_event(TrainingEndEvent(frozen(), ModelStatus.Invalid))

    assert seen == []


def test_waiting_ends_with_the_event_that_another_thread_sends() -> None:
    tested, model = ThreadedEngine(), frozen()
    thread = threading.Thread(
        target=lambda: tested.dispatch_model_event(TrainingEndEvent(model, ModelStatus.Trained))
    )
    thread.start()

    tested.wait_models(model)
    thread.join()

    assert model.status is ModelStatus.Trained


def test_waiting_ends_after_its_time_out() -> None:
    assert not ThreadedEngine().wait_until(lambda: False, timeout_s=0.001)


def test_changes_do_not_extend_the_time_out_of_waiting() -> None:
    tested, checks = ThreadedEngine(), iter([False] * 10 + [True])

    def changes_state() -> bool:
        tested.notify_change()
        return next(checks)

    assert not tested.wait_until(changes_state, timeout_s=0)


def test_stopping_models_is_optional() -> None:
    class Plain(ThreadedEngine):
        can_stop_models = ExecutionEngine.can_stop_models
        stop_models = ExecutionEngine.stop_models

    assert not Plain().can_stop_models()
    with pytest.raises(RuntimeError, match="Plain cannot stop models"):
        Plain().stop_models(frozen())


def test_engines_without_a_state_save_an_empty_one() -> None:
    tested = engine()

    tested.load_state_dict(tested.state_dict())

    assert tested.state_dict() == {}
    assert WorkerInfo("host", -1).host == "host"
