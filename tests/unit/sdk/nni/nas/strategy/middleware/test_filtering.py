import pytest

from nni.nas.space.status import ModelStatus
from nni.nas.strategy import Random
from nni.nas.strategy.middleware import Chain, Filter
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import Submitting, bits, digits


@pytest.mark.claim("nas", 48)
def test_filter_that_rejects_everything_ends_the_run_after_its_patience() -> None:
    engine = SimulatedEngine(lambda _sample: 1.0)
    chain = Chain(Random(seed=0), Filter(lambda _model: False))

    chain(bits(40), engine)

    assert engine.submitted == []
    assert len(chain.list_models(sort=False)) == 1000


def test_rejected_models_are_invalid_and_others_evaluated() -> None:
    chain = Chain(Submitting(1, 5, 2), Filter(lambda model: model.sample["a"] < 3))

    chain(digits(9), SimulatedEngine(lambda sample: float(sample["a"])))

    assert [(model.status, model.metric) for model in chain.list_models(sort=False)] == [
        (ModelStatus.Trained, 1),
        (ModelStatus.Invalid, None),
        (ModelStatus.Trained, 2),
    ]


def test_rejected_models_have_the_given_metric() -> None:
    chain = Chain(Submitting(1), Filter(lambda _model: False, metric_for_invalid=-5))

    chain(digits(9), SimulatedEngine(lambda _sample: 1.0))

    assert [model.metric for model in chain.list_models(sort=False)] == [-5]


def test_patience_counts_rejections_in_a_row() -> None:
    chain = Chain(
        Submitting(5, 1, 5, 5, 1), Filter(lambda model: model.sample["a"] < 3, patience=2)
    )

    chain(digits(9), SimulatedEngine(lambda _sample: 1.0))

    assert [model.sample for model in chain.list_models(sort=False)] == [
        {"a": 5},
        {"a": 1},
        {"a": 5},
        {"a": 5},
    ]


def test_without_a_history_rejected_models_are_not_listed() -> None:
    chain = Chain(Submitting(5), Filter(lambda _model: False, retain_history=False))

    chain(digits(9), SimulatedEngine(lambda _sample: 1.0))

    assert chain.list_models(sort=False) == []


def test_rejections_in_a_row_survive_a_resume() -> None:
    first, second = (Filter(lambda _model: False, patience=2) for _ in range(2))
    Chain(Submitting(5, 5), first)(digits(9), SimulatedEngine(lambda _sample: 1.0))

    second.set_engine(SimulatedEngine(lambda _sample: 1.0))
    second.load_state_dict(first.state_dict())

    assert not second.budget_available()


def test_patience_is_positive() -> None:
    with pytest.raises(ValueError, match="patience must be >= 1, got 0"):
        Filter(bool, patience=0)
