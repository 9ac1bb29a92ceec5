"""The first event follows from the configuration."""

import pytest

from nni_proto.experiment.v1 import config_pb2
from svc_common.errors import InvalidArgumentError
from svc_manager.converters.creation import created_event
from svc_manager.domain.values import OptimizeMode


def test_the_first_event_holds_the_settings_of_its_configuration() -> None:
    config = config_pb2.ExperimentConfig(
        trial_concurrency=3, experiment_working_directory="/root", retry_failed_trials=1
    )

    created = created_event(
        "abcd1234",
        config,
        environment_sha256="ab",
        interpreter="python3",
        nni_version="4",
        resolved_mode=OptimizeMode.MINIMIZE.value,
    )

    assert created.directory == "/root/abcd1234"
    assert created.budget.trial_concurrency == 3
    assert created.settings.retry_failed_trials == 1
    assert created.optimize_mode is OptimizeMode.MINIMIZE


def test_a_pool_that_no_subject_can_hold_is_refused() -> None:
    config = config_pb2.ExperimentConfig(experiment_working_directory="/root")
    config.training_services.add(platform="elsewhere")

    with pytest.raises(InvalidArgumentError, match="pool"):
        created_event(
            "a.b",
            config,
            environment_sha256="",
            interpreter="",
            nni_version="",
            resolved_mode=0,
        )
