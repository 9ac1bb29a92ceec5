import json
from collections.abc import Mapping
from typing import Any

import pytest

from nni.nas.execution import ExecutionEngine, IntermediateMetricEvent, TrainingEndEvent
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware import Chain, MedianStop
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import Submitting, digits, frozen


class Unstoppable(SimulatedEngine):
    can_stop_models = ExecutionEngine.can_stop_models


def test_model_below_the_median_is_stopped_with_its_last_metric() -> None:
    chain = Chain(Submitting(4, 6, 8, 3, 9), MedianStop())

    chain(digits(10), SimulatedEngine(lambda sample: float(sample["a"]), curve=4))

    assert [(model.status, model.metric) for model in chain.list_models(sort=False)] == [
        (ModelStatus.Trained, 4),
        (ModelStatus.Trained, 6),
        (ModelStatus.Trained, 8),
        (ModelStatus.Interrupted, 0.75),
        (ModelStatus.Trained, 9),
    ]


def test_models_of_a_resumed_search_are_compared_with_earlier_ones() -> None:
    def score(sample: Mapping[str, Any]) -> float:
        return float(sample["a"])

    first, middle, last = (MedianStop() for _ in range(3))
    Chain(Submitting(4, 6), first)(digits(10), SimulatedEngine(score, curve=4))
    middle.load_state_dict(first.state_dict())
    Chain(Submitting(8), middle)(digits(10), SimulatedEngine(score, curve=4))
    last.load_state_dict(json.loads(json.dumps(middle.state_dict())))
    resumed = Chain(Submitting(3, 9), last)

    resumed(digits(10), SimulatedEngine(score, curve=4))

    assert [(model.status, model.metric) for model in resumed.list_models(sort=False)] == [
        (ModelStatus.Interrupted, 0.75),
        (ModelStatus.Trained, 9),
    ]


def test_running_models_are_no_part_of_the_state() -> None:
    middleware = MedianStop()
    middleware.set_engine(SimulatedEngine(lambda _sample: 1.0))
    model = frozen(3)

    middleware.receive_event(IntermediateMetricEvent(model, 0.5))
    running = middleware.state_dict()
    middleware.receive_event(TrainingEndEvent(model, ModelStatus.Trained))

    assert (running, middleware.state_dict()) == ({"curves": []}, {"curves": [[0.5]]})


def test_few_models_are_not_compared() -> None:
    chain = Chain(Submitting(9, 8, 1), MedianStop())

    chain(digits(10), SimulatedEngine(lambda sample: float(sample["a"]), curve=4))

    assert len(chain.list_models()) == 3


def test_engines_that_cannot_stop_models_are_refused() -> None:
    chain = Chain(Submitting(1), MedianStop())

    with pytest.raises(ValueError, match="MedianStop needs an engine that can stop models"):
        chain.initialize(digits(3), Unstoppable(lambda _sample: 1.0))
