"""Values that follow from several fields of a configuration."""

from __future__ import annotations

import pytest

from nni.experiment.config import (
    ExperimentConfig,
)
from nni.experiment.errors import ConfigError
from tests.support.experiment_configs import complete


def test_sections_that_were_not_filled_in_are_not_given() -> None:
    config = ExperimentConfig()

    assert config.given("assessor") is None
    assert not {"tuner", "assessor", "advisor"} & config.to_dict().keys()


@pytest.mark.parametrize("name", ["BOHB", "hyperband"])
def test_advisor_under_tuner_counts_as_the_advisor(name: str) -> None:
    config = complete(tuner={"name": name})

    advisor = config.given("advisor")

    assert advisor is not None
    assert advisor.name == name
    assert config.given("tuner") is None


def test_advisor_under_tuner_beside_another_advisor_stays_a_tuner() -> None:
    config = complete(tuner={"name": "BOHB"}, advisor={"name": "Hyperband"})

    assert config.given("tuner") is not None


@pytest.mark.claim("platform", 7)
@pytest.mark.parametrize("spelling", ["0,2", [0, 2]])
def test_gpus_of_the_tuner_become_a_list(spelling: object) -> None:
    assert complete(tuner_gpu_indices=spelling).tuner_gpu_indices == [0, 2]


@pytest.mark.claim("platform", 11)
def test_unknown_log_level_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"logLevel must be .*'debug'.*got 'verbose'"):
        complete(log_level="verbose")


@pytest.mark.claim("platform", 11)
def test_debug_lowers_the_log_level_unless_one_is_given() -> None:
    assert complete().effective_log_level() == "info"
    assert complete(debug=True).effective_log_level() == "debug"
    assert complete(debug=True, log_level="error").effective_log_level() == "error"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("trial_gpu_number", 2**31),
        ("max_trial_retries", 2**31),
        ("max_trial_number", 2**63),
        ("max_experiment_duration", "9999999999d"),
    ],
)
def test_number_that_no_message_holds_is_refused_by_name(field: str, value: object) -> None:
    config = complete()

    with pytest.raises(ConfigError, match=f"{field} must be"):
        setattr(config, field, value)
