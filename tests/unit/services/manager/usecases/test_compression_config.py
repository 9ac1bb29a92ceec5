"""Configuration of compression jobs."""

from __future__ import annotations

import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import from_value, to_value
from svc_common.errors import InvalidArgumentError
from svc_manager.usecases.compression_config import JOB_LIMIT_BYTES, STEP_COMMAND, complete_job
from svc_manager.usecases.config_checks import check_config, choose_algorithm


def config() -> config_pb2.ExperimentConfig:
    made = config_pb2.ExperimentConfig(
        trial_code_directory="/code", experiment_working_directory="/root"
    )
    made.compression.job.CopyFrom(to_value({}))
    return made


def refused(made: config_pb2.ExperimentConfig) -> str:
    with pytest.raises(InvalidArgumentError) as refusal:
        complete_job(made)
    return refusal.value.field


def test_job_needs_neither_command_nor_concurrency_nor_space() -> None:
    made = config()

    choose_algorithm(made)

    check_config(made)
    assert (made.trial_command, made.trial_concurrency) == (STEP_COMMAND, 1)
    assert from_value(made.search_space) == {}
    assert not made.HasField("tuner")


def test_command_of_the_user_is_kept() -> None:
    made = config()
    made.trial_command = "taskset -c 0 python3 -m nni.compression.job"

    complete_job(made)

    assert made.trial_command.startswith("taskset")


@pytest.mark.parametrize("name", ["tuner", "assessor", "advisor", "search", "search_space"])
def test_what_a_search_needs_is_refused(name: str) -> None:
    made = config()
    getattr(made, name).SetInParent()

    assert refused(made) == name


def test_number_of_trials_and_concurrency_are_those_of_the_steps() -> None:
    made = config()
    made.trial_concurrency = 2
    assert refused(made) == "trial_concurrency"

    made.trial_concurrency = 1
    made.max_trial_number = 3
    assert refused(made) == "max_trial_number"


def test_description_must_fit_into_messages() -> None:
    made = config()
    made.compression.job.CopyFrom(to_value({"x": "x" * JOB_LIMIT_BYTES}))

    assert refused(made) == "compression.job"
