"""Configuration of an experiment of NNI 2.x."""

import warnings
from typing import Any

import pytest

from nni.nas.experiment.config import SequentialEngineConfig
from nni.retiarii.deprecation import warn_once
from nni.retiarii.experiment.pytorch import RetiariiExeConfig

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.mark.claim("nas", 88)
@pytest.mark.parametrize(("name", "value"), [("search_space", {}), ("trial_command", "true")])
def test_field_that_follows_from_the_base_model_is_reserved(name: str, value: Any) -> None:
    with pytest.raises(AttributeError, match=f"{name} of RetiariiExeConfig is reserved"):
        setattr(RetiariiExeConfig(), name, value)
    with pytest.raises(AttributeError, match="is reserved"):
        RetiariiExeConfig(**{name: value})


def test_fields_are_those_of_the_translated_configuration() -> None:
    config = RetiariiExeConfig("local")
    config.experiment_name = "mnist_search"
    config.trial_concurrency = 2
    config.max_trial_number = 20
    config.training_service.use_active_gpu = False

    translated = config.translated()

    assert translated.experiment_name == "mnist_search"
    assert (translated.trial_concurrency, translated.max_trial_number) == (2, 20)
    assert translated.training_service.use_active_gpu is False


@pytest.mark.parametrize(
    ("name", "engine", "model_format"),
    [
        ("py", "ts", "simplified"),
        ("base", "ts", "graph"),
        ("cgo", "cgo", "graph"),
        ("benchmark", "sequential", "raw"),
        ("ts", "ts", "simplified"),
        (SequentialEngineConfig(), "sequential", "raw"),
    ],
)
def test_engine_stands_for_engine_and_format(name: Any, engine: str, model_format: str) -> None:
    config = RetiariiExeConfig(execution_engine=name).translated()

    assert (config.execution_engine.name, config.model_format.name) == (engine, model_format)


def test_default_engine_is_pure_python() -> None:
    assert RetiariiExeConfig().execution_engine == "py"


def test_options_of_graphs_belong_to_engine_and_format() -> None:
    config = RetiariiExeConfig("remote", execution_engine="cgo")
    config.max_concurrency_cgo = 3
    config.batch_waiting_time = 10
    config.dummy_input = [1, 3, 32, 32]

    translated = config.translated()

    assert translated.execution_engine.max_concurrency_cgo == 3
    assert translated.execution_engine.batch_waiting_time == 10
    assert translated.model_format.dummy_input == [1, 3, 32, 32]


def test_unknown_engine_is_refused() -> None:
    with pytest.raises(ValueError, match="execution engine must be one of"):
        RetiariiExeConfig(execution_engine="oneshot").translated()


def test_configuration_warns_of_the_newer_name_once() -> None:
    warn_once.cache_clear()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(2):
            RetiariiExeConfig("local")

    assert [str(one.message).rpartition(" ")[2] for one in caught] == [
        "nni.nas.experiment.NasExperimentConfig"
    ]
