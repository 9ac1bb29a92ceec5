import pytest

from nni.nas.execution import ExecutionEngine
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware import Chain, MedianStop
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import Submitting, digits


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


def test_few_models_are_not_compared() -> None:
    chain = Chain(Submitting(9, 8, 1), MedianStop())

    chain(digits(10), SimulatedEngine(lambda sample: float(sample["a"]), curve=4))

    assert len(chain.list_models()) == 3


def test_engines_that_cannot_stop_models_are_refused() -> None:
    chain = Chain(Submitting(1), MedianStop())

    with pytest.raises(ValueError, match="MedianStop needs an engine that can stop models"):
        chain.initialize(digits(3), Unstoppable(lambda _sample: 1.0))
