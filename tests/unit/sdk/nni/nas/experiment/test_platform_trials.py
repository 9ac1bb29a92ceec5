import sys

import pytest

from nni.experiment.errors import WrongStateError
from nni.nas.experiment.config import NasExperimentConfig
from nni.nas.experiment.platform_trials import (
    WAITING_TUNER,
    ManagerTrialPlatform,
    experiment_config,
)


def test_experiment_has_the_limits_of_the_search_and_a_tuner_that_waits() -> None:
    config = NasExperimentConfig(
        "ts",
        "simplified",
        "local",
        trial_concurrency=3,
        max_trial_number=7,
        max_trial_duration="1m",
    )
    config.trial_command = f"{sys.executable} -m nni.nas.execution.training_service trial"

    space = {"width": {"_type": "choice", "_value": [1], "kind": "value"}}

    made = experiment_config(config, space)

    assert (made.trial_concurrency, made.max_trial_number) == (3, 7)
    assert (made.max_trial_duration, made.trial_command) == ("1m", config.trial_command)
    assert (made.tuner.class_name, made.search_space) == (WAITING_TUNER, space)


def test_platform_that_was_never_opened_can_be_closed_and_takes_no_trial() -> None:
    platform = ManagerTrialPlatform(NasExperimentConfig("ts", "simplified", "local"))

    platform.close()

    with pytest.raises(WrongStateError, match="call open first"):
        platform.add("key", {})
