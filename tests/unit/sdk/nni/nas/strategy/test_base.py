import logging
from typing import Any

import pytest

from nni.nas.execution import ExecutionEngine
from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.base import StrategyStatus, ignore_old_keywords, ranked
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import Submitting, digits, frozen


def value_of(sample: dict[str, Any]) -> float:
    return float(sample["a"])


class Raising(Submitting):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def _run(self) -> None:
        raise self.error


class Constructed(Submitting):
    def __init__(self, space: ExecutableModelSpace | None, engine: ExecutionEngine | None) -> None:
        self.values = (1,)
        super(Submitting, self).__init__(space, engine)


def test_space_and_engine_may_be_given_to_the_constructor() -> None:
    strategy = Constructed(digits(3), SimulatedEngine(value_of))

    assert strategy.status is StrategyStatus.Initialized


@pytest.mark.parametrize("given", [(digits(3), None), (None, SimulatedEngine(value_of))])
def test_space_and_engine_are_given_together(given: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match="model_space and engine must be given together"):
        Constructed(*given)


def test_call_initializes_and_runs() -> None:
    strategy, engine = Submitting(1, 2), SimulatedEngine(value_of)

    strategy(digits(3), engine)

    assert strategy.status is StrategyStatus.Succeeded
    assert engine.samples == [{"a": 1}, {"a": 2}]


def test_uninitialized_strategies_have_neither_space_nor_engine() -> None:
    strategy = Submitting()

    for use in (
        lambda: strategy.model_space,
        lambda: strategy.engine,
        strategy.run,
    ):
        with pytest.raises(RuntimeError, match="is not initialized; call initialize first"):
            use()


def test_interrupt_leaves_the_strategy_interrupted() -> None:
    strategy = Raising(KeyboardInterrupt())

    with pytest.raises(KeyboardInterrupt):
        strategy(digits(3), SimulatedEngine(value_of))

    assert strategy.status is StrategyStatus.Interrupted
    with pytest.raises(RuntimeError, match="build a new strategy"):
        strategy.run()


def test_error_leaves_the_strategy_failed() -> None:
    strategy = Raising(OSError("disk"))

    with pytest.raises(OSError, match="disk"):
        strategy(digits(3), SimulatedEngine(value_of))

    assert strategy.status is StrategyStatus.Failed


def test_models_cannot_be_listed_before_the_run() -> None:
    strategy = Submitting()
    strategy.initialize(digits(3), SimulatedEngine(value_of))

    with pytest.raises(RuntimeError, match="has no models before it runs"):
        strategy.list_models()


def test_restored_models_are_listed_with_the_new_ones() -> None:
    strategy, old = Submitting(1), frozen(2)
    old.metrics.final = 2
    old.status = ModelStatus.Trained

    strategy.initialize(digits(3), SimulatedEngine(value_of))
    strategy.restore_models([old])
    strategy.run()

    assert [model.sample for model in strategy.list_models()] == [{"a": 2}, {"a": 1}]


def test_fewer_models_than_requested_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    strategy = Submitting(1)
    strategy(digits(3), SimulatedEngine(value_of))

    with caplog.at_level(logging.WARNING):
        models = strategy.list_models(limit=5)

    assert len(models) == 1
    assert "only 1 models exist, 5 were requested" in caplog.text


def test_ranking_holds_trained_models_with_a_metric_only() -> None:
    good, better, nan, failed, unknown = (frozen() for _ in range(5))
    for model, metric in ((good, 1.0), (better, 2.0), (nan, float("nan")), (failed, 9.0)):
        model.metrics.final = metric
        model.status = ModelStatus.Trained
    failed.status = ModelStatus.Failed
    unknown.status = ModelStatus.Trained

    assert ranked([good, nan, failed, unknown, better]) == [better, good]


def test_old_keywords_warn_and_others_are_refused() -> None:
    with pytest.warns(DeprecationWarning, match="cycles of Random has no effect any more; use x"):
        ignore_old_keywords("Random", {"cycles": 3}, {"cycles": "use x"})
    with pytest.raises(TypeError, match="Random got an unexpected keyword argument 'other'"):
        ignore_old_keywords("Random", {"other": 3}, {"cycles": "use x"})
