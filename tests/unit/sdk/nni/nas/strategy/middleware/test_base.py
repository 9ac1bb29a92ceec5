import pytest

from nni.nas.space.executable import ExecutableModelSpace
from nni.nas.space.status import ModelStatus
from nni.nas.strategy.middleware import StrategyMiddleware
from nni.testing.strategies import SimulatedEngine
from tests.support.architecture_search import frozen


class Ending(StrategyMiddleware):
    """Middleware that ends each model with a metric."""

    def submit_models(self, *models: ExecutableModelSpace) -> None:
        for model in models:
            self.remember(model)
            self.end_model(model, ModelStatus.Invalid, 3)


def test_history_lists_what_was_submitted_here() -> None:
    middleware, model = Ending(), frozen()
    middleware.set_engine(SimulatedEngine(lambda _sample: 1.0))

    middleware.submit_models(model, model)

    assert middleware.list_models() == [model]
    assert middleware.list_models(ModelStatus.Trained) == []
    assert (model.metric, model.status) == (3, ModelStatus.Invalid)


def test_without_a_history_the_models_of_the_engine_are_listed() -> None:
    middleware = Ending(retain_history=False)
    middleware.set_engine(SimulatedEngine(lambda _sample: 1.0))

    middleware.submit_models(frozen())

    assert middleware.list_models() == []


def test_shutdown_is_left_to_the_owner_of_the_engine() -> None:
    middleware = StrategyMiddleware()
    middleware.set_engine(SimulatedEngine(lambda _sample: 1.0))

    with pytest.raises(RuntimeError, match="does not own its engine"):
        middleware.shutdown()
