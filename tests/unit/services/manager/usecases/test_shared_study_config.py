from __future__ import annotations

from typing import Any

import pytest
from google.protobuf.duration_pb2 import Duration

from nni_proto.experiment.v1 import config_pb2
from svc_common.errors import InvalidArgumentError
from svc_manager.usecases.config_checks import check_config, choose_algorithm
from svc_manager.usecases.shared_study_config import complete_shared_study


def study(**fields: Any) -> config_pb2.ExperimentConfig:
    fields.setdefault("callers", config_pb2.Callers())
    config = config_pb2.ExperimentConfig(experiment_working_directory="/experiments", **fields)
    config.search_space.map_value.SetInParent()
    return config


def test_lease_tuner_and_retries_have_defaults() -> None:
    config = study()

    choose_algorithm(config)

    check_config(config)
    assert config.callers.lease.seconds == 60
    assert (config.max_trial_retries, config.trial_concurrency) == (0, 1)
    assert config.tuner.name == "auto"


def test_given_lease_and_retries_stay() -> None:
    config = study(
        callers=config_pb2.Callers(lease=Duration(seconds=5)), max_trial_retries=2, seed=3
    )

    complete_shared_study(config)

    assert (config.callers.lease.seconds, config.max_trial_retries) == (5, 2)


def test_a_completed_configuration_is_accepted_again() -> None:
    config = study()
    complete_shared_study(config)
    again = config_pb2.ExperimentConfig.FromString(config.SerializeToString())

    complete_shared_study(again)

    assert again == config


@pytest.mark.parametrize(
    "fields",
    [
        {"trial_command": "python3 trial.py"},
        {"trial_code_directory": "/code"},
        {"trial_concurrency": 2},
        {"assessor": config_pb2.AlgorithmConfig(name="Medianstop")},
        {"advisor": config_pb2.AlgorithmConfig(name="BOHB")},
        {"nas": config_pb2.NasConfig()},
        {"training_services": [config_pb2.TrainingServiceConfig(platform="local")]},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_what_agents_would_need_is_refused(fields: dict[str, Any]) -> None:
    (name,) = fields

    with pytest.raises(InvalidArgumentError, match=f"{name} must be unset for a shared study"):
        complete_shared_study(study(**fields))


@pytest.mark.parametrize("lease", [Duration(nanos=1), Duration(seconds=3601), Duration(seconds=-1)])
def test_a_lease_out_of_range_is_refused(lease: Duration) -> None:
    with pytest.raises(InvalidArgumentError, match=r"callers\.lease must be"):
        complete_shared_study(study(callers=config_pb2.Callers(lease=lease)))
