import pytest

from nni.mutable import Sample
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware import Chain, FailureHandler
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import Submitting, digits


@pytest.mark.claim("nas", 49)
def test_failing_model_is_retried() -> None:
    engine = SimulatedEngine(lambda _sample: None)
    chain = Chain(Submitting(1), FailureHandler(retry_patience=2))

    chain(digits(3), engine)

    assert len(engine.submitted) == 3
    assert [model.status for model in chain.list_models(sort=False)] == [ModelStatus.Failed]


def test_retry_that_succeeds_looks_like_one_evaluation() -> None:
    scores = iter([None, 7.0])
    engine = SimulatedEngine(lambda _sample: next(scores))
    chain, ends = Chain(Submitting(1), FailureHandler(retry_patience=5)), []
    chain.initialize(digits(3), engine)
    chain.engine.register_model_event_callback("training_end", lambda e: ends.append(e.status))

    chain.run()

    assert ends == [ModelStatus.Trained]
    assert [model.metric for model in chain.list_models()] == [7.0]


def test_retries_end_with_the_budget() -> None:
    engine = SimulatedEngine(lambda _sample: None, max_model_count=2)
    chain = Chain(Submitting(1), FailureHandler(retry_patience=5))

    chain(digits(3), engine)

    assert len(engine.submitted) == 2


def test_failed_model_gets_the_metric_and_stays_failed() -> None:
    def score(sample: Sample) -> float | None:
        return None if sample["a"] == 1 else 1.0

    chain = Chain(Submitting(1, 2), FailureHandler(metric=-3))

    chain(digits(3), SimulatedEngine(score))

    assert [(model.status, model.metric) for model in chain.list_models(sort=False)] == [
        (ModelStatus.Failed, -3),
        (ModelStatus.Trained, 1),
    ]


def test_other_statuses_pass() -> None:
    chain = Chain(Submitting(1), FailureHandler(metric=-3, failure_types=()))

    chain(digits(3), SimulatedEngine(lambda _sample: None))

    assert chain.list_models(sort=False)[0].metric is None


@pytest.mark.parametrize("given", [{}, {"metric": 1.0, "retry_patience": 1}])
def test_either_metric_or_patience_is_given(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="exactly one of metric and retry_patience"):
        FailureHandler(**given)  # type: ignore[arg-type]  # a wrong combination


def test_patience_is_positive() -> None:
    with pytest.raises(ValueError, match="retry_patience must be >= 1, got 0"):
        FailureHandler(retry_patience=0)
