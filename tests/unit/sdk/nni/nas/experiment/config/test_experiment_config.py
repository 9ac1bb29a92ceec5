import logging
from pathlib import Path
from typing import Any

import pytest

from nni.experiment import RemoteConfig
from nni.experiment.errors import ConfigError
from nni.nas.evaluator import FunctionalEvaluator
from nni.nas.experiment.config import (
    CgoEngineConfig,
    NasExperimentConfig,
    SequentialEngineConfig,
)
from nni.nas.experiment.config.experiment_config import AVAILABLE_ENGINES
from nni.nas.experiment.engines import _ENGINES
from nni.nas.strategy import Chain, Random, RandomOneShot
from nni.nas.strategy.base import Strategy
from nni.nas.strategy.middleware import Filter
from nni.testing.strategies import TableSpace
from tests.support.supernet_trials import Branches, evaluator


class OneShot(Random):
    is_one_shot = True


class Supernet(TableSpace):
    is_supernet = True


def default(strategy: Any, space: Any = None) -> NasExperimentConfig:
    return NasExperimentConfig.default(TableSpace() if space is None else space, None, strategy)


def canonical(config: NasExperimentConfig) -> NasExperimentConfig:
    return config.canonical(TableSpace(), None, Random())


@pytest.mark.claim("nas", 61)
@pytest.mark.parametrize(
    "config",
    [
        default(OneShot()),
        default(Chain(OneShot(), Filter(bool))),
        default(Random(), Supernet()),
    ],
)
def test_one_shot_strategies_and_supernets_stay_in_this_process(
    config: NasExperimentConfig,
) -> None:
    assert (config.execution_engine.name, config.model_format.name) == ("sequential", "raw")


@pytest.mark.claim("nas", 61)
def test_other_strategies_take_the_platform() -> None:
    config = default(Random())

    assert (config.execution_engine.name, config.model_format.name) == ("ts", "simplified")
    assert config.training_service.platform == "local"
    assert canonical(config).trial_concurrency == 1


@pytest.mark.parametrize(
    ("config", "strategy", "rule"),
    [
        (NasExperimentConfig("service", "raw"), Random(), "model_format must not be 'raw'"),
        (NasExperimentConfig("service"), OneShot(), "execution_engine must not be 'service'"),
    ],
)
def test_search_that_cannot_travel_to_the_service_is_refused(
    config: NasExperimentConfig, strategy: Strategy, rule: str
) -> None:
    with pytest.raises(ValueError, match=rule):
        config.canonical(object(), None, strategy)


@pytest.mark.parametrize(
    "config", [NasExperimentConfig("service"), NasExperimentConfig("service", "raw")]
)
def test_one_shot_search_travels_to_the_service_in_the_simplified_format(
    config: NasExperimentConfig,
) -> None:
    made = config.canonical(Branches(), evaluator(), RandomOneShot())

    assert (made.execution_engine.name, made.model_format.name) == ("service", "simplified")


@pytest.mark.parametrize(
    ("model_format", "trained_by", "error", "rule"),
    [
        ("graph", evaluator(), ValueError, "model_format must be 'simplified' for RandomOneShot"),
        ("simplified", FunctionalEvaluator(print), TypeError, "needs a Lightning evaluator"),
    ],
)
def test_one_shot_search_that_no_trial_can_run_is_refused(
    model_format: str, trained_by: Any, error: type[Exception], rule: str
) -> None:
    config = NasExperimentConfig("service", model_format)

    with pytest.raises(error, match=rule):
        config.canonical(Branches(), trained_by, RandomOneShot())


def test_available_engines_are_those_that_can_be_constructed() -> None:
    assert set(_ENGINES) == AVAILABLE_ENGINES


@pytest.mark.claim("nas", 62)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("search_space", {"x": {"_type": "choice", "_value": [1]}}),
        ("trial_code_directory", "/"),
        ("trial_command", "python3 train.py"),
    ],
)
def test_derived_fields_must_not_be_set(field: str, value: object) -> None:
    config = NasExperimentConfig("sequential", "raw")
    setattr(config, field, value)

    with pytest.raises(ValueError, match=field):
        canonical(config)


@pytest.mark.claim("nas", 63)
def test_sequential_engine_evaluates_one_model_at_a_time() -> None:
    config = NasExperimentConfig("sequential", "raw", trial_concurrency=2)

    with pytest.raises(ValueError, match="trial_concurrency must be 1 with the sequential engine"):
        canonical(config)


def test_platform_is_ignored_by_the_sequential_engine(caplog: pytest.LogCaptureFixture) -> None:
    config = NasExperimentConfig("sequential", "raw", "remote")

    with caplog.at_level(logging.WARNING):
        made = canonical(config)

    assert made.training_service.platform == "local"
    assert "the sequential engine ignores training_service" in caplog.text


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ({"max_trial_duration": "10m", "max_experiment_duration": "1h"}, 600),
        ({"max_experiment_duration": "1h"}, 3600),
        ({}, None),
    ],
)
def test_limits_of_the_engine_are_those_of_the_experiment(
    fields: dict[str, Any], seconds: float | None
) -> None:
    made = canonical(NasExperimentConfig("sequential", "raw", max_trial_number=7, **fields))

    assert made.execution_engine.max_model_count == 7
    assert made.execution_engine.max_duration == seconds


def test_own_limits_of_the_engine_are_kept() -> None:
    engine = SequentialEngineConfig(max_model_count=3, max_duration=4.5)

    made = canonical(NasExperimentConfig(engine, "raw", max_trial_number=7))

    assert (made.execution_engine.max_model_count, made.execution_engine.max_duration) == (3, 4.5)


def test_canonical_configuration_is_a_copy_and_canonical_itself() -> None:
    config = NasExperimentConfig("sequential", "raw", max_trial_number=7)

    made = canonical(config)

    assert config.execution_engine.max_model_count is None
    assert canonical(made) == made
    assert made.trial_command is not None
    assert made.trial_command.endswith("-m nni.nas.execution.training_service trial")


def test_missing_engine_and_format_are_those_of_the_strategy() -> None:
    made = NasExperimentConfig().canonical(TableSpace(), None, OneShot())

    assert (made.execution_engine.name, made.model_format.name) == ("sequential", "raw")


def test_names_may_be_assigned() -> None:
    config: Any = NasExperimentConfig()

    config.execution_engine = "cgo"
    config.model_format = "keep"

    assert isinstance(config.execution_engine, CgoEngineConfig)
    assert config.model_format.name == "raw"
    with pytest.raises(ConfigError, match="execution engine must be one of"):
        config.execution_engine = "foo"
    with pytest.raises(TypeError, match="execution engine must be a name"):
        config.execution_engine = 3


def test_cgo_needs_remote_machines() -> None:
    local, remote = (NasExperimentConfig("cgo", "raw", name) for name in ("local", "remote"))

    with pytest.raises(TypeError, match="must be that of remote machines, got local"):
        canonical(local)
    assert canonical(remote).execution_engine.training_service.platform == "remote"


def test_remote_machines_of_the_cgo_engine_are_those_of_the_experiment() -> None:
    engine = CgoEngineConfig(training_service=RemoteConfig(machine_list=[]))

    made = canonical(NasExperimentConfig(engine, "graph"))

    assert made.training_service == made.execution_engine.training_service
    assert made.training_service.platform == "remote"


def test_configuration_survives_a_file(tmp_path: Path) -> None:
    config = NasExperimentConfig("sequential", "simplified", max_trial_number=7)

    config.save(tmp_path / "config.yaml")
    read = NasExperimentConfig.load(tmp_path / "config.yaml")

    assert read == config
    assert read.to_dict()["experimentType"] == "nas"


def test_reused_processes_are_asked_for_by_the_command_of_a_trial() -> None:
    config = NasExperimentConfig("ts", "simplified", "local", worker_reuse=True)

    made = canonical(config)

    assert made.trial_command is not None
    assert made.trial_command.endswith("-m nni.nas.execution.training_service trial --reuse")
    assert canonical(made) == made
    assert not NasExperimentConfig("ts", "simplified").worker_reuse


@pytest.mark.parametrize("name", ["worker_reuse", "save_models"])
def test_sequential_engine_has_no_trials_of_models(name: str) -> None:
    config = NasExperimentConfig("sequential", "raw")
    setattr(config, name, True)

    with pytest.raises(ValueError, match=f"{name} must be False with the sequential engine"):
        canonical(config)


def test_merged_models_are_not_saved() -> None:
    config = NasExperimentConfig("cgo", "raw", "remote", save_models=True)

    with pytest.raises(ValueError, match="save_models must be False with the engine 'cgo'"):
        canonical(config)


def test_saved_models_are_asked_for_by_the_command_of_a_trial() -> None:
    config = NasExperimentConfig("ts", "simplified", "local", worker_reuse=True, save_models=True)

    made = canonical(config)

    assert made.trial_command is not None
    assert made.trial_command.endswith(" trial --reuse --save")
    assert canonical(made) == made


def test_worker_reuse_is_a_flag() -> None:
    with pytest.raises(ValueError, match="workerReuse"):
        NasExperimentConfig("ts", "simplified", worker_reuse=3)


def test_wrong_engine_is_named_once() -> None:
    with pytest.raises(ConfigError) as refused:
        NasExperimentConfig("tx", "graph", "local")

    assert str(refused.value).count("'tx'") == 1
