import itertools

import pytest

from nni.nas.execution import ModelEvent
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware import Chain, MultipleEvaluation
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import Submitting, digits, frozen


@pytest.mark.claim("nas", 50)
def test_final_metric_is_the_mean_of_all_evaluations() -> None:
    scores = itertools.count(1)
    engine = SimulatedEngine(lambda _sample: float(next(scores)))
    chain = Chain(Submitting(1), MultipleEvaluation(3))

    chain(digits(3), engine)

    (model,) = chain.list_models()
    assert (len(engine.submitted), model.metric, model.status) == (3, 2.0, ModelStatus.Trained)


def test_intermediate_metrics_are_averaged_step_by_step() -> None:
    scores = itertools.count(2, 2)
    engine = SimulatedEngine(lambda _sample: float(next(scores)), curve=2)
    chain = Chain(Submitting(1), MultipleEvaluation(2))

    chain(digits(3), engine)

    (model,) = chain.list_models()
    assert model.metrics.intermediates == [1.5, 3.0]


def test_events_of_the_copies_stay_below() -> None:
    seen: list[ModelEvent] = []
    chain = Chain(Submitting(1), MultipleEvaluation(2))
    chain.initialize(digits(3), SimulatedEngine(lambda _sample: 1.0))
    chain.engine.register_model_event_callback("training_end", seen.append)

    chain.run()

    assert [event.model for event in seen] == chain.list_models()


def test_status_is_the_first_that_is_not_trained() -> None:
    scores = iter([1.0, None, 3.0])
    chain = Chain(Submitting(1), MultipleEvaluation(3))

    chain(digits(3), SimulatedEngine(lambda _sample: next(scores)))

    (model,) = chain.list_models(sort=False)
    assert (model.status, model.metric) == (ModelStatus.Failed, 2.0)


def test_model_without_any_metric_has_none() -> None:
    chain = Chain(Submitting(1), MultipleEvaluation(2))

    chain(digits(3), SimulatedEngine(lambda _sample: None))

    assert chain.list_models(sort=False)[0].metric is None


def test_without_a_history_running_models_are_listed() -> None:
    middleware, model = MultipleEvaluation(2, retain_history=False), frozen()
    engine = SimulatedEngine(lambda _sample: 1.0, concurrency=3)
    middleware.set_engine(engine)

    middleware.submit_models(model)
    running = list(middleware.list_models())
    middleware.wait_models(model)

    assert (running, list(middleware.list_models())) == ([model], [])


def test_stopping_a_model_stops_its_copies() -> None:
    middleware, model = MultipleEvaluation(2), frozen(1)
    engine = SimulatedEngine(lambda _sample: 1.0, concurrency=3, curve=3)
    middleware.set_engine(engine)
    middleware.submit_models(model)

    middleware.stop_models(model)
    middleware.wait_models(model)

    assert model.status is ModelStatus.Interrupted


def test_one_evaluation_is_refused() -> None:
    with pytest.raises(ValueError, match="repeat must be >= 2, got 1"):
        MultipleEvaluation(1)
