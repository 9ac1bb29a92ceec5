from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nni.experiment.config import (
    AlgorithmConfig,
    CustomAlgorithmConfig,
    ExperimentConfig,
    LocalConfig,
)
from nni.experiment.conversion import config_from_proto, config_to_proto
from nni.experiment.errors import ConfigError
from nni_wire.values import from_value

EVERYTHING: dict[str, Any] = {
    "experiment_name": "n",
    "search_space": {"x": {"_type": "uniform", "_value": [0, 1e-5]}},
    "trial_command": "python3 trial.py",
    "trial_concurrency": 2,
    "trial_gpu_number": 0,
    "max_experiment_duration": "1800s",
    "max_trial_number": 10,
    "max_trial_duration": "1.5s",
    "max_trial_retries": 0,
    "retry_failed_trials": 1,
    "include_intermediate_results": True,
    "seed": 3,
    "objectives": [{"metric": "loss", "mode": "minimize"}],
    "constraints": [{"metric": "size", "max": 2.0}],
    "tags": {"a": "b"},
    "log_level": "debug",
    "debug": True,
    "tuner_gpu_indices": [0, 2],
    "tuner": {"name": "TPE", "class_args": {"optimize_mode": "maximize"}},
    "assessor": {"class_name": "a.B"},
    "training_service": {"platform": "local", "useActiveGpu": False, "gpuIndices": [1]},
}

SLURM: dict[str, Any] = {"platform": "slurm", "host": "login", "user": "ann"}


def test_configuration_survives_the_wire() -> None:
    config = ExperimentConfig(**EVERYTHING)

    assert config_from_proto(config_to_proto(config)) == config


def test_what_is_not_given_is_unset() -> None:
    message = config_to_proto(
        ExperimentConfig(
            search_space={},
            trial_command="c",
            trial_concurrency=1,
            tuner=AlgorithmConfig(name="TPE"),
            training_service=LocalConfig(),
        )
    )

    for name in ("trial_gpu_number", "max_trial_number", "max_trial_retries", "seed"):
        assert not message.HasField(name)
    assert not message.HasField("max_experiment_duration")
    assert not message.HasField("assessor")
    assert message.log_level == "info"


def test_advisor_under_tuner_is_sent_as_the_advisor() -> None:
    message = config_to_proto(ExperimentConfig(tuner=AlgorithmConfig(name="BOHB")))

    assert message.advisor.name == "BOHB"
    assert not message.HasField("tuner")


def test_zero_gpus_differ_from_none() -> None:
    message = config_to_proto(ExperimentConfig(trial_gpu_number=0))

    assert message.HasField("trial_gpu_number")
    assert message.trial_gpu_number == 0


def test_fraction_of_a_duration_is_kept() -> None:
    duration = config_to_proto(ExperimentConfig(max_trial_duration="1.5s")).max_trial_duration

    assert (duration.seconds, duration.nanos) == (1, 500_000_000)


def test_search_space_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "s.json"
    path.write_text(json.dumps({"x": {"_type": "choice", "_value": [1, "1", None, True]}}))

    message = config_to_proto(ExperimentConfig(search_space_file=path))

    assert from_value(message.search_space)["x"]["_value"] == [1, "1", None, True]


def test_missing_space_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="searchSpaceFile must name an existing file"):
        config_to_proto(ExperimentConfig(search_space_file=tmp_path / "nope"))


def test_custom_class_carries_its_folder(tmp_path: Path) -> None:
    tuner = CustomAlgorithmConfig(class_name="m.T", code_directory=tmp_path)

    message = config_to_proto(ExperimentConfig(tuner=tuner))

    assert message.tuner.custom.class_name == "m.T"
    assert message.tuner.custom.code_directory == str(tmp_path)


def test_paths_of_secrets_are_sent_with_their_values() -> None:
    config = ExperimentConfig(**{**EVERYTHING, "training_service": {**SLURM, "password": "one"}})

    [service] = config_to_proto(config).training_services

    assert list(service.secret_paths) == ["password"]
    assert from_value(service.options)["password"] == "one"


def test_agents_of_a_cluster_know_how_long_a_trial_may_run() -> None:
    config = ExperimentConfig(**{**EVERYTHING, "training_service": SLURM})

    [service] = config_to_proto(config).training_services

    assert from_value(service.options)["maxTrialDuration"] == "1.5s"
