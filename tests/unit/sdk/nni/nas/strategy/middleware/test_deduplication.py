from typing import Any

import pytest

from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware import Chain, Deduplication
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import Submitting, digits, frozen


def test_duplicates_are_invalid() -> None:
    engine = SimulatedEngine(lambda _sample: 1.0)
    chain = Chain(Submitting(1, 2, 1), Deduplication("invalid"))

    chain(digits(3), engine)

    assert engine.samples == [{"a": 1}, {"a": 2}]
    assert [model.status for model in chain.list_models(sort=False)][2] is ModelStatus.Invalid


@pytest.mark.claim("nas", 49)
def test_duplicates_replay_the_metrics_of_the_first() -> None:
    engine = SimulatedEngine(lambda sample: 4.0 + sample["a"], curve=2)
    chain = Chain(Submitting(1, 1), Deduplication("replay"))

    chain(digits(3), engine)

    first, second = chain.list_models(sort=False)
    assert len(engine.submitted) == 1
    assert second is not first
    assert second.metrics == first.metrics
    assert second.metrics.intermediates == [2.5, 5.0]
    assert second.status is ModelStatus.Trained


def test_failures_are_replayed_too() -> None:
    chain = Chain(Submitting(1, 1), Deduplication("replay"))

    chain(digits(3), SimulatedEngine(lambda _sample: None))

    assert [model.status for model in chain.list_models(sort=False)] == [ModelStatus.Failed] * 2


def test_duplicates_of_a_running_model_end_with_it() -> None:
    engine = SimulatedEngine(lambda _sample: 1.0, concurrency=2)
    chain = Chain(Submitting(1, 1), Deduplication("replay"))

    chain(digits(3), engine)
    before = [model.status for model in chain.list_models(sort=False)]
    engine.finish_next()

    assert before == [ModelStatus.Training, ModelStatus.Frozen]
    assert [model.metric for model in chain.list_models(sort=False)] == [1.0, 1.0]


def test_patience_ends_the_budget() -> None:
    chain = Chain(Submitting(1, 1, 1, 2), Deduplication("replay", patience=2))

    chain(digits(3), SimulatedEngine(lambda _sample: 1.0))

    assert len(chain.list_models(sort=False)) == 3


@pytest.mark.parametrize(("action", "submitted"), [("invalid", 0), ("replay", 1)])
def test_samples_of_an_earlier_process_are_known_without_metrics(
    action: Any, submitted: int
) -> None:
    first, second = Deduplication(action), Deduplication(action)
    Chain(Submitting(1), first)(digits(3), SimulatedEngine(lambda _sample: 1.0))
    engine = SimulatedEngine(lambda _sample: 1.0)
    second.set_engine(engine)
    second.load_state_dict(first.state_dict())

    second.submit_models(frozen(1, 3))

    assert len(engine.submitted) == submitted


def test_running_models_are_not_part_of_the_state() -> None:
    middleware = Deduplication("invalid")
    middleware.set_engine(SimulatedEngine(lambda _sample: 1.0, concurrency=2))

    middleware.submit_models(frozen(1))

    assert middleware.state_dict()["seen"] == []


def test_unknown_actions_are_refused() -> None:
    action: Any = "skip"

    with pytest.raises(ValueError, match="action must be 'invalid' or 'replay', got 'skip'"):
        Deduplication(action)


def test_models_without_a_sample_are_refused() -> None:
    middleware = Deduplication("invalid")
    middleware.set_engine(SimulatedEngine(lambda _sample: 1.0))

    with pytest.raises(ValueError, match="must have a sample"):
        middleware.submit_models(digits(3))
