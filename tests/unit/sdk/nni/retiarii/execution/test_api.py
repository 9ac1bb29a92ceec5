"""Functions that custom strategies of NNI 2.x call."""

from collections.abc import Iterator

import pytest

from nni.mutable import Categorical, Label
from nni.nas.space import ModelStatus, RawFormatModelSpace
from nni.nas.space.pytorch import PytorchGraphModelSpace
from nni.retiarii import Sampler, execution
from nni.retiarii.execution.api import SearchEnded
from nni.testing.strategies import SimulatedEngine, TableSpace
from tests.support.mutated_networks import BlockMutator, MutatedNet

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def engine() -> Iterator[SimulatedEngine]:
    """Return the engine of the running search."""
    made = SimulatedEngine(lambda _: 1.0, max_model_count=1)
    execution.set_execution_engine(made)
    yield made
    execution.set_execution_engine(None)


def test_functions_need_a_running_search() -> None:
    with pytest.raises(RuntimeError, match="no search runs"):
        execution.get_execution_engine()


def test_models_are_those_of_the_engine(engine: SimulatedEngine) -> None:
    space = RawFormatModelSpace(TableSpace(Categorical([1], label="a")))
    model = space.freeze({"a": 1})

    assert execution.get_execution_engine() is engine
    assert execution.get_and_register_default_listener(engine) is engine
    assert execution.query_available_resources() == 1
    assert not execution.is_stopped_exec(model)
    execution.submit_models(model)
    execution.wait_models(model)
    assert execution.is_stopped_exec(model)
    assert list(execution.list_models()) == [model]
    assert list(execution.list_models(ModelStatus.Failed)) == []


def test_strategy_that_asks_again_after_the_end_is_interrupted(engine: SimulatedEngine) -> None:
    space = RawFormatModelSpace(TableSpace(Categorical([1], label="a")))
    execution.submit_models(space.freeze({"a": 1}))

    assert execution.budget_exhausted()
    assert execution.query_available_resources() == 0
    with pytest.raises(SearchEnded):
        execution.query_available_resources()


def test_mutated_model_is_frozen_with_its_choices(engine: SimulatedEngine) -> None:
    model = PytorchGraphModelSpace.from_model(MutatedNet())
    for label in ("first", "second"):
        mutator = BlockMutator("block").bind_sampler(Sampler())
        mutator.label = Label(label)
        model = mutator.apply(model)

    execution.submit_models(model)

    assert model.sample is not None
    assert list(model.sample) == ["first", "second"]
    assert engine.submitted == [model]
