"""Configuration of explorations."""

from __future__ import annotations

import pytest

from nni_proto.experiment.v1 import config_pb2
from nni_wire.values import from_value
from svc_common.errors import InvalidArgumentError
from svc_manager.usecases.config_checks import check_config, choose_algorithm
from svc_manager.usecases.exploration_config import CANDIDATE_COMMAND, complete_exploration


def config() -> config_pb2.ExperimentConfig:
    return config_pb2.ExperimentConfig(
        trial_code_directory="/code",
        experiment_working_directory="/root",
        nas=config_pb2.NasConfig(strategy="Random"),
    )


def test_exploration_needs_neither_command_nor_concurrency_nor_space() -> None:
    made = config()

    choose_algorithm(made)

    check_config(made)
    assert (made.trial_command, made.trial_concurrency) == (CANDIDATE_COMMAND, 1)
    assert from_value(made.search_space) == {}
    assert not made.HasField("tuner")


def test_what_a_client_gives_is_kept() -> None:
    made = config()
    made.trial_command = "/python -m nni.nas.execution.training_service trial"
    made.trial_concurrency = 4

    complete_exploration(made)

    assert made.trial_command.startswith("/python")
    assert made.trial_concurrency == 4


@pytest.mark.parametrize("name", ["tuner", "assessor", "advisor", "search", "compression"])
def test_algorithm_beside_the_strategy_is_refused(name: str) -> None:
    made = config()
    getattr(made, name).SetInParent()

    with pytest.raises(InvalidArgumentError) as refusal:
        complete_exploration(made)

    assert refusal.value.field == name
