import pytest

from nni.mutable import Categorical
from nni.nas.execution import SequentialExecutionEngine
from nni.nas.experiment.config import NasExperimentConfig, SequentialEngineConfig
from nni.nas.experiment.engines import Search, create_engine, create_space
from nni.nas.space import RawFormatModelSpace
from nni.testing.strategies import TableSpace


def search() -> Search:
    space = TableSpace(Categorical([1], label="a"))
    return Search(space, RawFormatModelSpace(space))


def test_sequential_engine_has_the_limits_of_its_configuration() -> None:
    config = SequentialEngineConfig(max_model_count=3, max_duration=4.5, continue_on_failure=True)

    engine = create_engine(NasExperimentConfig(config, "raw"), search())

    assert isinstance(engine, SequentialExecutionEngine)
    assert (engine.max_model_count, engine.max_duration) == (3, 4.5)
    assert engine.continue_on_failure


def test_engine_that_cannot_be_started_is_refused_with_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"set config\.execution_engine = 'sequential'"):
        create_engine(NasExperimentConfig("cgo", "raw"), search())


def test_raw_space_keeps_the_live_object() -> None:
    space, evaluator = TableSpace(Categorical([1], label="a")), SequentialEngineConfig

    made = create_space(NasExperimentConfig("sequential", "raw"), space, evaluator)

    assert isinstance(made, RawFormatModelSpace)
    assert made.model_space is space
    assert made.evaluator is evaluator


def test_space_that_has_no_such_format_is_refused() -> None:
    config = NasExperimentConfig("sequential", "simplified")

    with pytest.raises(TypeError, match="model_space must be a ModelSpace"):
        create_space(config, object(), None)
