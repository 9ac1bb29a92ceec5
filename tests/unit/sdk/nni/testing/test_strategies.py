from collections.abc import Mapping
from typing import Any

import pytest

from nni.mutable import Categorical
from nni.nas.execution import ExecutionEngine
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus
from nni.nas.strategy import Random
from nni.nas.strategy.base import Strategy
from nni.testing.strategies import SimulatedEngine, StrategyConformance, TableSpace, ThreadedEngine
from tests.support.architecture_search import digits, frozen


class Forgetful(Random):
    """Strategy that loses its state, and so submits models twice."""

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        pass


class Outside(Random):
    """Strategy that submits one model of another space."""

    def _initialize(
        self, model_space: ExecutableModelSpace, engine: ExecutionEngine
    ) -> ExecutableModelSpace:
        super()._initialize(model_space, engine)
        return digits(3)


class Unseeded(Random):
    """Strategy that ignores its seed."""

    def __init__(self, seed: int) -> None:
        del seed
        super().__init__()


class Stubborn(Random):
    """Strategy that submits more than the budget allows."""

    def wait_for_resource(self) -> bool:
        return len(list(self.engine.list_models())) < 40


def suite(strategy: type[Any]) -> StrategyConformance:
    class Suite(StrategyConformance):
        def make(self, seed: int) -> Strategy:
            made: Strategy = strategy(seed=seed)
            return made

    return Suite()


@pytest.mark.parametrize(
    ("strategy", "test"),
    [
        (Forgetful, "test_resumed_search_continues"),
        (Outside, "test_models_are_in_the_space"),
        (Unseeded, "test_same_seed_gives_the_same_models"),
        (Stubborn, "test_ends_with_the_budget"),
    ],
)
def test_suite_finds_faulty_strategies(strategy: type[Any], test: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        getattr(suite(strategy), test)()


def test_suite_passes_correct_strategies() -> None:
    for test in ("test_resumed_search_continues", "test_ends_with_the_budget"):
        getattr(suite(Random), test)()
    assert isinstance(suite(Random).make(0), Random)


@pytest.mark.parametrize(("order", "ended"), [("first", 1), ("last", 3)])
def test_models_end_in_the_order_asked_for(order: Any, ended: int) -> None:
    engine = SimulatedEngine(lambda _sample: 1.0, concurrency=4, order=order)
    engine.submit_models(frozen(1), frozen(2), frozen(3))

    engine.finish_next()

    (model,) = engine.list_models(ModelStatus.Trained)
    assert model.sample == {"a": ended}


def test_completed_models_are_refused() -> None:
    engine, model = SimulatedEngine(lambda _sample: 1.0), frozen()
    engine.submit_models(model)

    with pytest.raises(RuntimeError, match="must be frozen, it is trained"):
        engine.submit_models(model)


def test_waiting_for_the_impossible_ends() -> None:
    assert not SimulatedEngine(lambda _sample: 1.0).wait_until(lambda: False)
    SimulatedEngine(lambda _sample: 1.0).finish_next()


def test_space_without_a_network_freezes_to_its_values() -> None:
    space = TableSpace(Categorical([1, 2], label="a"))

    assert space.freeze({"a": 2}) == {"a": 2}


def test_threads_end_models_and_then_themselves() -> None:
    engine = ThreadedEngine(lambda sample: None if sample["a"] == 2 else 1.0, 5)
    models = [frozen(value) for value in (1, 2, 3)]

    engine.submit_models(*models)
    engine.wait_models()
    engine.shutdown()

    assert [model.metric for model in models] == [1.0, None, 1.0]
    assert engine.list_models(ModelStatus.Failed) == [models[1]]
    assert engine.budget_available()
    assert engine.idle_worker_available()
