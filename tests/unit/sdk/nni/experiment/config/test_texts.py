"""Rule of all texts of a configuration."""

from pathlib import Path
from typing import Any

import pytest

from nni.experiment import ExperimentConfig
from nni.experiment.config.texts import check_texts
from nni.experiment.errors import ConfigError


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"experiment_name": "\ud800"}, "experimentName"),
        ({"trialCommand": "\ud800"}, "trialCommand"),
        ({"trial_code_directory": Path("\udcff")}, "trialCodeDirectory"),
        ({"search_space": {"\ud800": {}}}, "searchSpace.\\ud800"),
        ({"training_service": {"platform": "remote", "x\ud800": 1}}, "trainingService.x\\ud800"),
    ],
)
def test_texts_of_a_configuration_have_no_half_of_a_surrogate_pair(
    fields: dict[str, Any], place: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        ExperimentConfig(**fields)

    [problem] = caught.value.problems
    assert problem.field == place
    assert problem.rule.startswith("must be text in UTF-8")
    assert problem.remedy


def test_assigned_texts_are_checked_too() -> None:
    config = ExperimentConfig()

    with pytest.raises(ConfigError, match="experiment_name must be text in UTF-8"):
        config.experiment_name = "\udfff"


def test_search_space_that_was_changed_in_its_place_is_checked_before_a_start() -> None:
    config = ExperimentConfig(
        search_space={},
        trial_command="true",
        trial_concurrency=1,
        training_service={"platform": "local"},
    )
    assert isinstance(config.search_space, dict)
    config.search_space["x"] = {"_type": "choice", "_value": ["\ud800"]}

    with pytest.raises(ConfigError, match=r"searchSpace\.x\._value\[0\] must be text in UTF-8"):
        config.validate()


def test_error_shows_nothing_of_a_secret() -> None:
    with pytest.raises(ConfigError) as caught:
        check_texts({"password": "s3cret\ud800"})

    assert "s3cret" not in str(caught.value)
