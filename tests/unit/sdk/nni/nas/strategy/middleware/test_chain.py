from typing import Any

import pytest

from nni.nas.space.status import ModelStatus
from nni.nas.strategy import GridSearch, Random
from nni.nas.strategy.base import StrategyStatus
from nni.nas.strategy.middleware import Chain, FailureHandler, Filter
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import Submitting, digits


@pytest.mark.claim("nas", 48)
def test_chain_needs_middleware() -> None:
    with pytest.raises(ValueError, match="middlewares must hold at least one"):
        Chain(Random())


def test_arguments_are_checked() -> None:
    part: Any = object()

    with pytest.raises(ValueError, match="strategy must be a Strategy"):
        Chain(part, Filter(bool))
    with pytest.raises(ValueError, match="middlewares must be StrategyMiddleware"):
        Chain(Random(), part)


def test_parts_are_numbered_from_the_strategy_down() -> None:
    strategy, first, second = Random(), Filter(bool), FailureHandler(metric=0)

    chain = Chain(strategy, first, second)

    assert [chain[index] for index in range(len(chain))] == [strategy, first, second]
    assert chain.strategy is strategy


def test_handler_above_a_filter_sees_its_rejections() -> None:
    handler = FailureHandler(metric=-1, failure_types=(ModelStatus.Invalid,))
    chain = Chain(Submitting(1), handler, Filter(lambda _model: False))

    chain(digits(3), SimulatedEngine(lambda _sample: 1.0))

    assert [model.metric for model in chain.list_models(sort=False)] == [-1]


def test_handler_below_a_filter_does_not() -> None:
    handler = FailureHandler(metric=-1, failure_types=(ModelStatus.Invalid,))
    chain = Chain(Submitting(1), Filter(lambda _model: False), handler)

    chain(digits(3), SimulatedEngine(lambda _sample: 1.0))

    assert [model.metric for model in chain.list_models(sort=False)] == [None]


def test_state_is_that_of_all_parts() -> None:
    chain = Chain(Submitting(1), Filter(lambda _model: False))
    chain(digits(3), SimulatedEngine(lambda _sample: 1.0))

    assert chain.state_dict() == {
        "strategy": {"values": [1]},
        "middlewares": [{"rejected_in_a_row": 1}],
    }
    assert chain.status is StrategyStatus.Succeeded


def test_state_of_another_chain_is_refused() -> None:
    chain = Chain(GridSearch(), Filter(bool))
    chain.initialize(digits(3), SimulatedEngine(lambda _sample: 1.0))

    with pytest.raises(ValueError, match="the state is of 2 middlewares, this chain has 1"):
        chain.load_state_dict({"strategy": {}, "middlewares": [{}, {}]})
